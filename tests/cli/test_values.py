"""Values of options are read exactly or refused with the way to write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.cli.values import (
    by_network,
    network_names,
    parse_bytes,
    parse_dims,
    parse_duration,
    parse_latency,
    parse_positive,
    parse_shapes,
)
from ansorpy.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("90s", 90), ("1h30m", 5400), ("45", 45), ("0.5m", 30), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert parse_duration(None) is None


@pytest.mark.parametrize("text", ["", "ten", "10x", "m", "-5s", "1h 30", "10ms"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration(text)


def test_a_duration_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="not positive"):
        parse_duration("0s")


@pytest.mark.parametrize(
    ("text", "size"), [("1GiB", 1 << 30), ("512MiB", 512 << 20), ("7", 7), ("1.5kB", 1500)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["GiB", "1gib", "1 GiBs", "-1"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_bytes(text)


def test_shapes_and_dims() -> None:
    assert parse_shapes(["x:1x3x224x224", "a:b:7"]) == {"x": (1, 3, 224, 224), "a:b": (7,)}
    assert parse_dims(["batch=1", "a=b=3", "past=0"]) == {"batch": 1, "a=b": 3, "past": 0}


@pytest.mark.parametrize("text", ["x", "x:", "x:1x", ":1x2", "x:1xN"])
def test_bad_shapes(text: str) -> None:
    with pytest.raises(UsageError, match="is not an input's shape"):
        parse_shapes([text])


@pytest.mark.parametrize("text", ["batch", "batch=", "=1", "batch=-1", "batch=x"])
def test_bad_dims(text: str) -> None:
    with pytest.raises(UsageError, match="is not a dimension's size"):
        parse_dims([text])


def test_latencies() -> None:
    assert [parse_latency(t) for t in ("5ms", "800us", "1.5s", "2 ms")] == [5e-3, 8e-4, 1.5, 2e-3]
    for text in ("5", "0ms", "5m", "fast"):
        with pytest.raises(UsageError, match="is not a latency"):
            parse_latency(text)


def test_values_for_all_networks_and_for_one() -> None:
    names = ["a", "b", "c=d"]
    assert by_network("--bound", ["5ms"], names) == dict.fromkeys(names, "5ms")
    assert by_network("--bound", ["b=1ms", "5ms"], names) == {"a": "5ms", "b": "1ms", "c=d": "5ms"}
    assert by_network("--bound", ["c=d=1ms"], names) == {"c=d": "1ms"}
    with pytest.raises(UsageError, match="--bound x=1ms: there is no network 'x'"):
        by_network("--bound", ["x=1ms"], names)


def test_networks_of_one_name_are_told_apart_by_their_folders() -> None:
    assert network_names([Path("a/x.onnx"), Path("y.onnx")]) == ["x", "y"]
    alike = [Path("a/x.onnx"), Path("y.onnx"), Path("./b/x.onnx"), Path("x.onnx")]
    assert network_names(alike) == ["a/x", "y", "b/x", "x"]
    with pytest.raises(UsageError, match="two networks are called a/x"):
        network_names([Path("a/x.onnx"), Path("./a/x.onnx")])


def test_weights_are_over_nothing() -> None:
    assert parse_positive("--weight", "2.5") == 2.5
    for text in ("0", "-1", "two"):
        with pytest.raises(UsageError, match="--weight .*: not a number over 0"):
            parse_positive("--weight", text)
