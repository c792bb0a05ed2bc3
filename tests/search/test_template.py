"""Templates, schedules by hand with open numbers: AutoTVM's tutorial product of 512 x 512."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.cost.boosted import BoostedOptions, BoostedTrees
from ansorpy.cost.metrics import rank_correlation
from ansorpy.cost.programs import Programs
from ansorpy.errors import UsageError
from ansorpy.measure.records.database import Database
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import template
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.state import State
from ansorpy.search.strategies.annealing import Annealing
from ansorpy.search.strategies.grid import Grid
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategy import Strategy
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.transfers.none import NoTransfer
from ansorpy.search.transfers.schedule_reuse import ScheduleReuse
from ansorpy.search.trials import MeasuredTrials
from tests.search.runners import FormulaRunner, true_seconds
from tests.search.tasks import matmul


def tiled(state: State) -> State:
    """Both axes split in two parts, vectors along the inner part of the second."""
    i, j, k = state.stage("C").iters
    state, (io, ii) = state.split("C", i, (None,), max_innermost=512)
    state, (jo, ji) = state.split("C", j, (None,), max_innermost=512)
    state = state.reorder("C", [io, jo, k, ii, ji])
    return state.vectorize("C", [ji])


@cache
def product(n: int) -> SketchSampler:
    return SketchSampler(matmul(n, n, n), template(tiled))


def searched(
    n: int, strategy: Callable[[], Strategy], size: int = 8, seed: int = 0, goal_s: float = 0.0
) -> list[float]:
    """Seconds of the programs in the order of their trials, until one takes *goal_s*."""
    task, runner, seconds = matmul(n, n, n), FormulaRunner(), list[float]()
    options = SearchOptions(strategy, transfer=NoTransfer(), seed=seed)
    model = BoostedTrees(BoostedOptions(40))
    listener = seconds.append
    search = TaskSearch(
        task, product(n), model, MeasuredTrials(runner, Database()), options,
        lambda event: None if event.trial is None else listener(event.trial.result.median_s),
    )  # fmt: skip
    while min(seconds, default=1.0) > goal_s and not search.exhausted:
        search.step(size)
    return seconds


def test_the_grid_visits_all_hundred_points() -> None:
    task, source = matmul(512, 512, 512), product(512)
    [sketch] = source.every()
    assert sketch.space.size == 100
    states = [sketch.resolve(row) for row in sketch.space.rows(0, 100)]
    expected = sorted(true_seconds(task, state) for state in states)
    assert sorted(visited()) == pytest.approx(expected)


@cache
def visited() -> list[float]:
    """Seconds of all hundred programs of the product of 512."""
    return searched(512, Grid, 50)


def trials_to(best_s: float, strategy: Callable[[], Strategy], seed: int) -> int:
    found = searched(512, strategy, 8, seed, best_s)
    return found.index(best_s) if best_s in found else 100


def test_annealing_under_the_model_finds_the_best_before_random_drawing() -> None:
    best = min(visited())
    needed = [
        np.median([trials_to(best, strategy, seed) for seed in range(3)])
        for strategy in (lambda: Annealing(chains=64, steps=6), RandomSearch)
    ]
    assert needed[0] < needed[1]


def test_schedules_of_one_shape_start_the_search_of_another() -> None:
    database = Database()
    for n, transfer in ((256, NoTransfer()), (512, ScheduleReuse())):
        options = SearchOptions(Grid, transfer=transfer)
        trials = MeasuredTrials(FormulaRunner(), database)
        search = TaskSearch(matmul(n, n, n), product(n), BoostedTrees(), trials, options)
        search.step(40 if n == 256 else 4)
    assert search.history.best is not None
    usual = np.median(visited())
    assert search.history.best.seconds < usual / 2, "two of the first four come from the other"


def test_a_model_of_one_shape_ranks_another_better_than_none() -> None:
    model, cold, task = BoostedTrees(), BoostedTrees(), matmul(512, 512, 512)
    for n in (256, 512):
        [sketch] = product(n).every()
        programs = Programs(sketch.space, sketch.space.rows(0, 100))
        states = [sketch.resolve(row) for row in programs.table]
        seconds = np.array([true_seconds(matmul(n, n, n), state) for state in states])
        if n == 256:
            model.learn(matmul(n, n, n), programs, seconds)
            model.refit()
    warm, start = (rank_correlation(m.predict(task, programs), -seconds) for m in (model, cold))
    assert warm > start


def test_a_template_is_tuned_by_name() -> None:
    def scheduled(state: State) -> State:
        state, (_, inner) = state.split("B", "i", (OneOf((4, 8, 16)),))
        return state.vectorize("B", [inner])

    a = ap.placeholder((64,), name="A")
    b = ap.compute((64,), lambda i: a[i] * 2.0, name="B")
    kernel = ap.tune([a, b], rules=scheduled, trials=4, threads=1, strategy="grid", progress=False)
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)
    with pytest.raises(UsageError, match="the template returned None, not a State"):
        ap.tune([a, b], rules=lambda state: None, trials=4)  # type: ignore[arg-type, return-value]
