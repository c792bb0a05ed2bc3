"""The benchmark of networks tuned after others: its networks, its sums, and a run in small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.history import Best, TaskHistory
from ansorpy.target import Target
from ansorpy.tasks.outcome import TaskOutcome
from ansorpy.tasks.task_trials import TaskTrials
from benchmarks import warm
from tests.search.tasks import scale


def outcome(*rounds: tuple[int, float]) -> TaskOutcome:
    """A task that had so many trials and such a best time after each round."""
    task, history = replace(scale(64), target=Target.host()), TaskHistory()
    history.trials_after = [trials for trials, _ in rounds]
    history.best_after = [seconds for _, seconds in rounds]
    best = Best(State.initial(task.dag), MeasureResult(TrialKind.OK, (rounds[-1][1],)))
    return TaskOutcome(task, best, history, TaskTrials(0, 0))


def test_sums_are_of_the_best_times_at_each_point_scaled_to_the_last_timing() -> None:
    found = [outcome((2, 4.0), (4, 2.0), (8, 1.0)), outcome((3, 6.0), (8, 6.0))]
    sums = warm.totals([1.0, 2.0], found, [2.0, 3.0], [2, 4, 8])
    assert sums == [float("inf"), 2 * 2.0 + 2 * 3.0, 1 * 2.0 + 2 * 3.0]


def test_ways_that_differ_are_told_apart() -> None:
    assert len(set(warm.WAYS.values())) == len(warm.WAYS)


def test_a_way_without_a_program_of_a_task_has_no_sum() -> None:
    found = outcome((2, 4.0))
    nothing = TaskOutcome(found.task, None, TaskHistory(), TaskTrials(0, 0))
    [slow, none] = warm.timed_again([[found], [nothing]])
    assert 0 < slow[0] < 1 and none == [float("inf")]
    assert warm.totals([1.0], [nothing], none, [2, 4]) == [float("inf")] * 2


def test_a_network_of_another_size_has_other_tasks_of_the_same_classes() -> None:
    one, other = (warm.network(name, 1) for name in ("squeezenet", "squeezenet@96"))
    assert len(one) == len(other)
    shared = {t.key for t in one} & {t.key for t in other}
    assert len(shared) < len(one) / 2
    assert {t.class_key for t in one} == {t.class_key for t in other}


def test_ways_are_measured_on_the_same_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def small(name: str, threads: int) -> warm.Weights:
        whole = network(name, threads)
        return {t: w for t, w in list(whole.items())[-2:] if "softmax" not in t.name}

    network = warm.network
    monkeypatch.setattr(warm, "network", small)
    ways = ["cold", "schedules", "model"]
    arguments = ["--first", "squeezenet@64", "--second", "squeezenet@48", "--before", "6"]
    arguments += ["--trials-per-task", "2", "--records", str(tmp_path / "r.db"), "--threads", "1"]
    warm.main([*arguments, "--ways", *ways])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-len(ways) :]] == ways
    assert all(float(line.split()[-1]) > 0 for line in lines[-len(ways) :])
