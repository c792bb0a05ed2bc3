"""Options that give values to networks by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.cli.values import (
    by_network,
    latencies_by_network,
    network_names,
    targets_of,
    weights_by_network,
)
from ansorpy.errors import UsageError


def test_values_for_all_networks_and_for_one() -> None:
    names = ["a", "b", "c=d"]
    assert by_network("--latency-bound", ["5ms"], names) == dict.fromkeys(names, "5ms")
    assert by_network("--latency-bound", ["b=1ms", "5ms"], names) == {
        "a": "5ms",
        "b": "1ms",
        "c=d": "5ms",
    }
    assert by_network("--latency-bound", ["c=d=1ms"], names) == {"c=d": "1ms"}
    with pytest.raises(UsageError, match="--latency-bound x=1ms: there is no network 'x'"):
        by_network("--latency-bound", ["x=1ms"], names)


def test_networks_of_one_name_are_told_apart_by_their_folders() -> None:
    assert network_names([Path("a/x.onnx"), Path("y.onnx")]) == ["x", "y"]
    alike = [Path("a/x.onnx"), Path("y.onnx"), Path("./b/x.onnx"), Path("x.onnx")]
    assert network_names(alike) == ["a/x", "y", "b/x", "x"]
    assert network_names([Path("/"), Path()]) == ["/", "."]
    with pytest.raises(UsageError, match="two networks are called a/x"):
        network_names([Path("a/x.onnx"), Path("./a/x.onnx")])


def test_latencies_and_weights() -> None:
    assert latencies_by_network("--latency-bound", ["b=1ms", "5ms"], ["a", "b"]) == {
        "a": 5e-3,
        "b": 1e-3,
    }
    assert weights_by_network("--weight", ["2.5"], ["a"]) == {"a": 2.5}
    for text in ("0", "-1", "two"):
        with pytest.raises(UsageError, match="--weight .*: not a positive number"):
            weights_by_network("--weight", [text], ["a"])


def test_several_targets() -> None:
    assert targets_of("x86-64-v3, host") == ["x86-64-v3", "host"]
    assert targets_of("c:word=32,l2=0") == ["c:word=32,l2=0"]  # commas of its own
    assert targets_of("cortex-a76") == ["cortex-a76"]
    with pytest.raises(UsageError, match="--target names host twice"):
        targets_of("host,host")
