"""Schedulers replayed on learning curves."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.measure.records.database import Database
from ansorpy.search.task_search import SearchOptions
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from benchmarks.race.curves import Recording, Step, TaskCurve, reached, read, replay
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING, TREES
from tests.search.tasks import matmul, sampler

LIGHT = [name for name in SCHEDULERS.names if name != "dynatune"]
"""The schedulers that are fast enough to replay often."""


def recording(tasks: int, trials: int = 192, seed: int = 0) -> Recording:
    """Random search for tasks of very different weights; the first programs of one are wrong."""
    rng = np.random.default_rng(seed)
    curves = []
    for number in range(tasks):
        times = np.exp(rng.normal(0.0, 0.7, trials)) * 2.0 ** (-number)
        times[: 5 * (number == 1)] = inf
        curves.append(TaskCurve(np.minimum.accumulate(times), np.full(trials, 0.1 * (number + 1))))
    return Recording("random", tuple(curves), (TunedNetwork((1.0,) * tasks),))


@pytest.mark.parametrize("name", LIGHT)
def test_every_replay_ends_where_the_recording_ends(name: str) -> None:
    whole = recording(3, trials=80)
    steps = replay(whole, name, seed=1, size=8)
    assert steps == replay(whole, name, seed=1, size=8)
    assert steps[-1].trials == 240 and steps[-1].seconds == pytest.approx(80 * 0.6)
    assert steps[-1].latency_s == whole.end_s() == sum(c.best_s[-1] for c in whole.curves)
    assert all(a.latency_s >= b.latency_s for a, b in zip(steps, steps[1:], strict=False))
    assert steps[0].trials >= 24 and steps[0].latency_s < inf


def test_the_first_step_close_enough_to_the_end_counts() -> None:
    steps = [Step(8, 1.0, 3.0), Step(16, 2.0, 2.1), Step(24, 3.0, 2.0)]
    assert reached(steps, 2.0, 0.10) == steps[1] and reached(steps, 2.0, 0.01) == steps[2]
    assert reached(steps, 1.0, 0.5) is None


def test_the_gradient_needs_fewer_trials_than_turns_where_tasks_are_uneven() -> None:
    needed = {"gradient": 0, "round_robin": 0}
    for seed in range(4):
        uneven = recording(8, seed=seed)
        for name in needed:
            step = reached(replay(uneven, name), uneven.end_s(), 0.05)
            needed[name] += 1 << 20 if step is None else step.trials
    assert needed["gradient"] < 0.8 * needed["round_robin"]


def test_a_recorded_run_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "two.db"
    tasks = [WeightedTask(t, sampler(t), w) for t, w in ((matmul(16, 16, 16), 3.0),
                                                        (matmul(8, 8, 8), 1.0))]  # fmt: skip
    options = TuneOptions(SearchOptions(SAMPLING), SCHEDULERS.factory("round_robin"), model=TREES)
    with Database(path) as database:
        tuned = tune_tasks(
            tasks, Budget(trials_per_task=8), FormulaRunner(), database, options=options
        )
    found = read(path)
    assert [len(c.best_s) for c in found.curves] == [8, 8]
    assert [c.weight for c in found.curves] == [3.0, 1.0]
    best = [o.best.seconds for o in tuned.outcomes if o.best]
    assert [c.best_s[-1] for c in found.curves] == pytest.approx(best)
    assert found.end_s() == pytest.approx(3 * best[0] + best[1])
    assert all((c.seconds >= 0).all() and c.least_s > 0 and c.class_key for c in found.curves)


def test_a_database_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        read(tmp_path / "none.db")
    Database(tmp_path / "empty.db").close()
    with pytest.raises(UsageError, match="a run that searched"):
        read(tmp_path / "empty.db")
