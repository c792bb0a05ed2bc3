"""Comparisons run each engine in a process of its own and end when medians settle."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.handlers import burst
from ansorpy.evaluation.bench.processes import Contender, EngineFailure
from ansorpy.evaluation.bench.remarks import remarks, unsettled
from ansorpy.evaluation.bench.result import Comparison
from ansorpy.evaluation.bench.turns import Policy, Timing, compare

QUICK = Policy(burst_s=0.01, untimed_s=0.002, rounds=(2, 3), load_timeout_s=30)
HERE = "tests.evaluation.test_bench"


class Sleeper:
    """An engine that sleeps, and prints where only answers belong."""

    version = "1.0"

    def __init__(self, seconds: float, fails: str = "") -> None:
        self.seconds, self.fails, self.calls = seconds, fails, 0

    def run(self) -> None:
        self.calls += 1
        print("chatter")
        if self.fails == "crash" and self.calls > 2:
            os.abort()
        if self.fails == "raise":
            raise RuntimeError("no such luck")
        time.sleep(self.seconds)

    def outputs(self) -> dict[str, np.ndarray]:
        return {"pid": np.array(os.getpid())}


def refuse() -> Sleeper:
    raise UsageError("not this one", hint="another")


def _contender(name: str, **arguments: object) -> Contender:
    return Contender(name, f"{HERE}:Sleeper", arguments)


def test_an_engine_that_does_not_load_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    failures: dict[str, str] = {}
    contenders = [
        Contender("refusing", f"{HERE}:refuse", {}),
        _contender("a", seconds=0.001),
        _contender("dying", seconds=0.0, fails="raise"),
    ]
    timings = compare(
        contenders, QUICK, left_out=lambda name, error: failures.update({name: error.message})
    )
    assert list(timings) == ["a"] and timings["a"].runs >= 10
    assert failures == {
        "refusing": "refusing: not this one",
        "dying": "dying: RuntimeError: no such luck",
    }
    assert compare(contenders[:1], QUICK, left_out=lambda *failure: None) == {}


def test_two_engines_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(os.getcwd())
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    lines: list[str] = []
    contenders = [_contender("a", seconds=0.001), _contender("b", seconds=0.004)]
    timings = compare(contenders, QUICK, lines.append)
    assert list(timings) == ["a", "b"]
    assert all(len(t.medians_s) in (2, 3) and t.runs >= 10 for t in timings.values())
    assert timings["a"].version == "1.0"
    assert 1.0 <= timings["a"].min_ms <= timings["a"].median_ms
    assert timings["b"].min_ms >= 4.0
    assert lines[0] == "loading a" and lines[-1].startswith("round ")


def test_bursts_that_met_a_disturbance_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    looks = iter([False, True, False, False, *[False] * 100])
    contenders = [_contender("a", seconds=0.0), _contender("b", seconds=0.0)]
    timings = compare(contenders, QUICK, is_disturbed=lambda: next(looks))
    assert {name: t.repeated for name, t in timings.items()} == {"a": 1, "b": 0}
    assert all(len(t.bursts_s) in (2, 3) for t in timings.values())


@pytest.mark.parametrize(
    ("contender", "kind", "message"),
    [
        (_contender("x", seconds=0.0, fails="crash"), EngineFailure, "x failed: .* by SIGABRT"),
        (_contender("x", seconds=0.0, fails="raise"), EngineFailure, "RuntimeError: no such luck"),
        (Contender("x", f"{HERE}:refuse", {}), UsageError, "x: not this one"),
        (Contender("x", "tests.nowhere:y", {}), EngineFailure, "ModuleNotFoundError"),
    ],
)  # fmt: skip
def test_a_failing_engine_is_named(
    monkeypatch: pytest.MonkeyPatch, contender: Contender, kind: type[Exception], message: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    with pytest.raises(kind, match=message):
        compare([_contender("good", seconds=0.0), contender], QUICK)


def test_an_engine_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    with pytest.raises(EngineFailure, match="process of x failed: no answer within 1 s"):
        compare([_contender("x", seconds=600.0)], Policy(load_timeout_s=1.0))


def test_burst_counts_calls() -> None:
    engine = Sleeper(0.0)
    calls = burst(engine, untimed_s=0.0, burst_s=0.0, least_calls=7, most_calls=100)
    assert len(calls) == 7 and engine.calls == 8
    assert len(burst(engine, untimed_s=0.0, burst_s=60.0, least_calls=1, most_calls=3)) == 3


def test_settling() -> None:
    timing = Timing()
    for value in (1.0, 1.0, 1.0):
        timing.add([value])
    assert not timing.is_settled(0.01)
    timing.add([1.0])
    assert timing.is_settled(0.01)
    timing.add([9.0] * 9)  # one turn that was disturbed moves nothing
    assert timing.is_settled(0.01) and timing.median_ms == 1000.0
    for value in (1.2, 1.2, 1.2, 1.2):
        timing.add([value])
    assert not timing.is_settled(0.01) and timing.min_ms == 1000.0


def test_medians_that_do_not_settle_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.setattr(Timing, "is_settled", lambda timing, share: False)
    timings = compare([_contender("a", seconds=0.0)], QUICK)
    assert len(timings["a"].bursts_s) == 3
    [line] = unsettled(timings)
    assert line.startswith("the median of a did not settle in 3 bursts: theirs are ")
    assert Comparison("net", 1, timings).to_dict()["engines"]["a"]["settled"] is False


def test_the_range_of_the_bursts_is_that_of_their_medians() -> None:
    timing, steady = Timing(settled=False), Timing()
    for calls in ([1e-3, 67e-6, 50e-6], [96e-6] * 3, [70e-6]):
        timing.add(calls)
        steady.add([1e-3])
    assert timing.bursts_ms == pytest.approx((0.067, 0.096))
    [line] = unsettled({"ours": timing, "theirs": steady})
    assert "median of ours did not settle in 3 bursts: theirs are 0.067 to 0.096 ms" in line
    found = Comparison("net", 1, {"ours": timing}).to_dict()["engines"]["ours"]
    assert found["bursts_ms"] == timing.bursts_ms and not found["settled"]


def test_why_a_run_and_its_kernels_differ() -> None:
    assert list(remarks(0.85, None, None)) == []
    assert list(remarks(0.85, None, 0.7231)) == [
        "one run of ansorpy: 0.85 ms, 0.723 ms in its kernels when each was timed alone, while"
        " tuning",
        "these differ because a run includes the call from Python and a kernel alone finds its"
        " inputs and outputs in the caches of its cores (docs/reference/cli.md)",
    ]
    [times, reasons] = remarks(0.85, 0.83, 0.72)
    assert "0.83 ms in its kernels, 0.72 ms in its kernels when each was timed alone" in times
    assert "call from Python and a kernel alone" in reasons
    [_, reasons] = remarks(0.85, 0.83, None)
    assert (
        reasons
        == "these differ because a run includes the call from Python (docs/reference/cli.md)"
    )


def test_json_and_table() -> None:
    timings = {"ansorpy": Timing("0.1"), "other": Timing("2")}
    timings["ansorpy"].add([0.001, 0.003, 0.002])
    timings["other"].add([0.004])
    comparison = Comparison("net", 2, timings, 1.5)
    data = comparison.to_dict()
    assert set(data) == {"model", "threads", "machine", "kernels_ms", "engines"}
    assert data["kernels_ms"] == 1.5
    assert data["engines"]["ansorpy"]["median_ms"] == pytest.approx(2.0)
    assert data["engines"]["ansorpy"]["min_ms"] == pytest.approx(1.0)
    assert data["engines"]["ansorpy"]["runs"] == 3
    rows = comparison.table().text().splitlines()
    assert rows[0] == "net, 2 threads"
    assert rows[3].split() == ["other", "2", "4.000", "4.000", "1", "2.00x"]
