"""Comparisons run each engine in a process of its own and end when medians settle."""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.evaluation.bench.handlers import burst, bursts
from ansorpy.evaluation.bench.processes import Contender, EngineFailure
from ansorpy.evaluation.bench.remarks import account, doubts
from ansorpy.evaluation.bench.result import Comparison
from ansorpy.evaluation.bench.turns import Policy, Timing, compare
from ansorpy.measure.workers import locks
from ansorpy.measure.workers.locks import lock_cores
from tests.evaluation.engines import Sleeper

QUICK = Policy(burst_s=0.01, untimed_s=0.002, rounds=(2, 3), load_timeout_s=30)
HERE = "tests.evaluation.engines"


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


def test_two_engines_take_turns_while_no_tuner_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(os.getcwd())
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines: list[str] = []
    alone = Contender("a", f"{HERE}:Alone", {"seconds": 0.001})
    contenders = [alone, _contender("b", seconds=0.004)]
    timings = compare(contenders, QUICK, lines.append, gpus=["0000:01"])
    assert list(timings) == ["a", "b"]
    assert all(len(t.medians_s) in (2, 3) and t.runs >= 10 for t in timings.values())
    assert timings["a"].version == "1.0" and timings["a"].undisputed
    assert 1.0 <= timings["a"].min_ms <= timings["a"].median_ms
    assert timings["b"].min_ms >= 4.0
    assert lines[0] == "loading a" and lines[-1].startswith("round ")


def test_a_tuner_that_does_not_go_on_is_no_longer_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that is stopped, or whose progress function compares."""
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(locks, "WAIT_S", 0.01)
    threads = threading.active_count()
    with lock_cores(sorted(os.sched_getaffinity(0))):
        timings = compare([_contender("a", seconds=0.0)], QUICK)
        assert threading.active_count() <= threads + 1, "one waits for the lock, not one a burst"
    assert timings["a"].runs
    assert "a tuner may have used the machine while a ran" in doubts(timings)
    assert Comparison("net", 1, timings).to_dict()["engines"]["a"]["undisputed"] is False


def test_bursts_that_met_a_disturbance_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    looks = iter([False, True, False, False, *[False] * 100])
    contenders = [_contender("a", seconds=0.0), _contender("b", seconds=0.0)]
    timings = compare(contenders, QUICK, is_disturbed=lambda: next(looks))
    # Once more if the first burst was four times as long as its repeat, as on a busy machine.
    assert timings["a"].repeated in (1, 2) and timings["b"].repeated == 0
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
    # What fails once it has been loaded is told from an engine beside it.
    others = [_contender("good", seconds=0.0)] if contender.arguments else []
    with pytest.raises(kind, match=message):
        compare([*others, contender], QUICK)


def test_an_engine_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    with pytest.raises(EngineFailure, match="process of x failed: no answer within 0.2 s"):
        compare([_contender("x", seconds=600.0)], Policy(load_timeout_s=0.2))


def test_burst_counts_calls() -> None:
    engine = Sleeper(0.0)
    calls = burst(engine, untimed_s=0.0, burst_s=0.0, least_calls=7, most_calls=100)
    assert len(calls) == 7 and engine.calls == 8
    assert len(burst(engine, untimed_s=0.0, burst_s=60.0, least_calls=1, most_calls=3)) == 3


def test_a_long_call_is_a_burst_by_itself() -> None:
    engine = Sleeper(0.02)
    calls = burst(
        engine, untimed_s=0.0, burst_s=1.0, least_calls=5, most_calls=100, long_s=0.01
    )  # fmt: skip
    assert len(calls) == 1 and engine.calls == 2


def test_an_engine_far_behind_has_few_bursts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.setattr(Timing, "is_settled", lambda timing, share: False)
    contenders = [_contender(name, seconds=s) for name, s in (("a", 0), ("b", 4e-3), ("c", 0.05))]
    found = compare(contenders, replace(QUICK, rounds=(6, 6), long_s=0.04))
    assert {name: len(t.bursts_s) for name, t in found.items()} == {"a": 6, "b": 6, "c": 4}
    assert found["a"].runs >= 30 and found["c"].runs == 4


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
    [line] = doubts(timings)
    assert line.startswith("the median of a did not settle: those of its 3 bursts are ")
    assert Comparison("net", 1, timings).to_dict()["engines"]["a"]["settled"] is False


def test_the_range_of_the_bursts_is_that_of_their_medians() -> None:
    timing, steady = Timing(settled=False), Timing()
    for calls in ([1e-3, 67e-6, 50e-6], [96e-6] * 3, [70e-6]):
        timing.add(calls)
        steady.add([1e-3])
    assert timing.bursts_ms == pytest.approx((0.067, 0.096))
    [line] = doubts({"ours": timing, "theirs": steady})
    assert "median of ours did not settle: those of its 3 bursts are 67 to 96 us" in line
    found = Comparison("net", 1, {"ours": timing}).to_dict()["engines"]["ours"]
    assert found["bursts_ms"] == timing.bursts_ms and not found["settled"]


def test_a_run_is_the_sum_of_its_parts() -> None:
    assert account(0.85, None, None) is None

    def rows(*given: float | None) -> list[tuple[str, ...]]:
        table = account(0.8, *given)
        assert table is not None
        return [*table.rows]

    assert rows(None, 0.6) == [
        ("kernels, each alone, while tuning", "0.600", "75%"),
        ("data from other caches, between kernels, and the call", "+0.200", "25%"),
        ("one run", "0.800", "100%"),
    ]
    assert rows(0.7, None)[0] == ("kernels, in a run", "0.700", "87%")
    assert [row[1] for row in rows(0.7, 0.8)] == ["0.800", "-0.100", "+0.100", "0.800"]


def test_several_callers_have_engines_of_their_own() -> None:
    engines = [Sleeper(0.002), Sleeper(0.002)]
    calls = bursts(engines, untimed_s=0.0, burst_s=0.0, least_calls=5, most_calls=5)
    assert [len(one) for one in calls] == [5, 5] and [e.calls for e in engines] == [6, 6]
    timing = Timing("1", streams=2)
    timing.add([0.002] * 10)
    comparison = Comparison("net", 1, {"a": timing, "b": timing}, streams=2)
    assert comparison.table().title == "net, 1 thread, 2 callers at once"
    assert comparison.table().rows[1][-2:] == ("1000.0", "1.00x")
    assert comparison.bars(4).splitlines() == ["a  ████ 1000.0 calls/s", "b  ████ 1000.0 calls/s"]


def test_spread_percentiles_and_precisions_are_said() -> None:
    timing = Timing("1", precision="bf16", settled=False)
    for first in (0.001, 0.002, 0.003):
        timing.add([first] * 98 + [0.005, 0.009])
    assert timing.percentile_ms(90) == 3.0 and timing.percentile_ms(99) == 5.0
    table = Comparison("net", 1, {"a": timing}).table()
    row = dict(zip(table.heading, table.rows[0], strict=True))
    assert row["spread"] == "±50%?" and row["p99 ms"] == "5.000"
    assert Comparison("net", 1, {"a": timing}).precisions() == "computed in bf16 types: a"


def test_json_and_table() -> None:
    timings = {"ansorpy": Timing("0.1"), "other": Timing("2")}
    timings["ansorpy"].add([0.001, 0.003, 0.002])
    timings["other"].add([0.004])
    comparison = Comparison("net", 2, timings, 1.5)
    data = comparison.to_dict()
    assert set(data) == {"model", "threads", "streams", "machine", "kernels_ms", "engines"}
    assert data["kernels_ms"] == 1.5
    assert data["engines"]["ansorpy"]["median_ms"] == pytest.approx(2.0)
    assert data["engines"]["ansorpy"]["min_ms"] == pytest.approx(1.0)
    assert data["engines"]["ansorpy"]["runs"] == 3
    rows = comparison.table().text().splitlines()
    assert rows[0] == "net, 2 threads"
    assert rows[3].split() == [
        "other", "2", "4.000", "±0%", "4.000", "4.000", "1", "2.00x",
    ]  # fmt: skip
    assert comparison.bars(8).splitlines() == [
        "ansorpy  ████ 2.000 ms",
        "other    ████████ 4.000 ms",
    ]
