"""Options that give values to networks by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.cli.values import (
    by_network,
    latencies_by_network,
    network_names,
    requests_of,
    targets_of,
    weights_by_network,
)
from ansorpy.errors import UsageError
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget


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
    for first, second in (("5ms", "6ms"), ("b=5ms", "b=6ms")):
        said = f"--latency-bound {first} and --latency-bound {second} contradict each other"
        with pytest.raises(UsageError, match=said):
            by_network("--latency-bound", [first, "a=7ms", second], names)


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
    assert latencies_by_network("--latency-bound", [".5ms"], ["a"]) == {"a": 5e-4}
    for text in ("2.5", ".25e1"):
        assert weights_by_network("--weight", [text], ["a"]) == {"a": 2.5}
    for text in ("0", "-1", "two", "nan", "inf"):
        with pytest.raises(UsageError, match="--weight .*: not a positive number"):
            weights_by_network("--weight", [text], ["a"])


def test_several_targets() -> None:
    assert targets_of("x86-64-v3, host") == ["x86-64-v3", "host"]
    assert targets_of("c:word=32,l2=0") == ["c:word=32,l2=0"]  # commas of its own
    assert targets_of("cortex-a76") == ["cortex-a76"]
    with pytest.raises(UsageError, match="--target names host twice"):
        targets_of("host,host")


@pytest.mark.skipif(Target.host().triple[:6] != "x86_64", reason="needs an x86 CPU")
def test_targets_that_can_be_timed_share_the_budget() -> None:
    limits = {"trials": 9, "trials_per_task": 5, "time_limit": "10m"}
    first, other, away = requests_of({"target": "host,x86-64-v2,cortex-a76", **limits})
    for request in (first, other):
        assert request.budget == Budget(trials=4, trials_per_task=5, time_limit_s=300.0)
    assert away.target.name == "cortex-a76" and away.budget is None
    [alone] = requests_of({"target": "host", **limits})
    assert alone.budget == Budget(trials=9, trials_per_task=5, time_limit_s=600.0)
    assert [r.budget for r in requests_of({"target": "host,x86-64-v2", "effort": "none"})] == [
        None, None,
    ]  # fmt: skip
    with pytest.raises(UsageError, match="cortex-a76 cannot be timed on this machine"):
        requests_of({"target": "cortex-a76,rv64gcv"})
