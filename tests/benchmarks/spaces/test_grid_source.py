"""Searching recorded grids: nothing leaves them, and the answers are the recorded ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ansorpy.measure.records.database import Database
from ansorpy.measure.result import TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.strategies.evolution import crossover
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from benchmarks.spaces.grid import Grid
from benchmarks.spaces.grid_source import GridRunner, GridSource
from tests.benchmarks.spaces.grids import grid_of
from tests.search.small import TREES, small_strategy
from tests.search.tasks import dense_relu, matmul


@cache
def small() -> Grid:
    return grid_of(matmul(48, 36, 60))


@cache
def searched() -> Grid:
    return grid_of(dense_relu(24, 36, 48), points=10)


def test_what_is_drawn_mutated_and_crossed_stays_in_the_cut_domains(
    rng: np.random.Generator,
) -> None:
    source = GridSource(small())
    [sketch] = source.draw(10, rng)
    space = sketch.space
    sampled = sketch.sample(300, rng)
    assert space.within(sampled).all()
    table = sampled[sketch.valid(sampled)]
    assert len(table) and (source.numbers.of(table) >= 0).all()
    for _ in range(20):
        assert space.within(sketch.mutate(table, rng)).all()
    assert space.within(crossover(space, table, table[::-1], rng)).all()
    assert sketch.neighbour(rng) is None


def test_exactly_the_recorded_rows_are_valid(rng: np.random.Generator) -> None:
    grid = small()
    [sketch] = GridSource(grid).draw(1, rng)
    drawn = np.unique(sketch.space.sample(4000, rng), axis=0)
    known = set(map(tuple, grid.rows.tolist()))
    assert sketch.valid(drawn).tolist() == [tuple(row) in known for row in drawn.tolist()]
    assert sketch.valid(grid.rows).all()


def test_the_runner_answers_what_was_recorded() -> None:
    grid = small()
    source = GridSource(grid)
    states = [source.sketch.resolve(row) for row in grid.rows]
    found = GridRunner(source).measure(grid.task, states, incumbent_s=None)
    best_s = np.inf
    for number, result in enumerate(found):
        if np.isnan(grid.seconds[number]):
            assert (result.kind, result.reason) == (TrialKind.CRASH, "it crashed")
            continue
        assert result.median_s == pytest.approx(grid.seconds[number])
        slow = result.median_s > 3 * min(best_s, result.median_s)
        assert result.kind is (TrialKind.SLOW if slow else TrialKind.OK)
        best_s = min(best_s, result.median_s)


def test_the_default_schedule_is_answered_other_programs_are_not_recorded() -> None:
    grid = small()
    source = GridSource(grid)
    default = State.initial(grid.task.dag)
    other, _ = default.split("C", "i", (4,))
    found = GridRunner(source).measure(grid.task, [default, other], incumbent_s=None)
    assert (found[0].kind, found[0].median_s) == (TrialKind.OK, 1.0)
    assert (found[1].kind, found[1].reason) == (
        TrialKind.NOT_RECORDED, "matmul_48_36_60 has no such point",
    )  # fmt: skip


@pytest.mark.parametrize("strategy", STRATEGIES.names)
def test_every_strategy_searches_a_grid_to_its_end(strategy: str) -> None:
    grid = searched()
    source = GridSource(grid)
    options = SearchOptions(strategy=small_strategy(strategy), seed=1)
    database = Database()
    trials = MeasuredTrials(GridRunner(source), database)
    search = TaskSearch(grid.task, source, TREES(), trials, options)
    while not search.exhausted and search.history.trials < 2 * len(grid.rows):
        search.step(8)
    assert TrialKind.NOT_RECORDED not in search.history.failures
    assert search.history.trials <= len(grid.rows) + 1
    assert search.history.best_s is not None
    assert search.history.best_s <= float(np.median(grid.times))
