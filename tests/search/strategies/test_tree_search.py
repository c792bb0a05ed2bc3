"""Beam search, greedy decoding and Monte-Carlo tree search over prefixes."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import cache
from weakref import ref

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import StaticModel
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import PartialSketch
from ansorpy.search.prefix import begin
from ansorpy.search.strategies.beam import Beam
from ansorpy.search.strategies.protuner import ProTuner
from ansorpy.search.strategy import Context, Strategy
from benchmarks.spaces.grid import Grid
from benchmarks.spaces.grid_source import GridSource
from tests.benchmarks.spaces.grids import grid_of
from tests.search.asking import BowlModel, measured, ok, predicted
from tests.search.tasks import matmul


class Trap(StaticModel):
    """Scores a grid's programs by their first two decisions.

    The best program takes the first value of the first decision, whose other programs are the
    worst.
    """

    def __init__(self, source: GridSource) -> None:
        first = begin(source).options[0]
        self.first, self.second = (d for d in (first.decided[-1], first.options[-1].decided[-1]))

    def predict(self, task: Task, programs: Programs) -> Floats:
        one, two = (
            programs.table[:, programs.space.columns.index(str(name))] == value
            for name, value in (self.first, self.second)
        )
        return np.where(one, np.where(two, 1.0, 0.01), 0.5)


@cache
def recorded() -> Grid:
    return grid_of(matmul(24, 32, 16), points=150)


def trapped() -> Context:
    source = GridSource(recorded())
    return Context(source.grid.task, source, Trap(source), np.random.default_rng(3))


def test_tree_search_leaves_a_trap_that_a_narrow_beam_falls_into() -> None:
    narrow = measured(Beam(width=1, rollouts=4), trapped(), predicted, rounds=1, n=4)
    assert max(c.score for c in narrow) == 0.5
    broad = ProTuner(trees=2, explorations=40, rollouts=8)
    found = measured(broad, trapped(), predicted, rounds=1, n=4)
    assert max(c.score for c in found) == 1.0


def test_a_root_goes_down_one_decision_a_round_and_begins_anew() -> None:
    at, strategy = trapped(), ProTuner(trees=1, explorations=4, rollouts=8)
    depths = []
    for _ in range(12):
        measured(strategy, at, predicted, rounds=1, n=4)
        depths += [len(root.decided) for root in strategy.roots]
    falls = [n for n, (a, b) in enumerate(zip(depths, depths[1:], strict=False)) if b <= a]
    assert depths[0] == 1 and falls, depths
    assert all(b == a + 1 for a, b in zip(depths[: falls[0]], depths[1 : falls[0]], strict=False))


def test_a_root_moves_to_the_fastest_program_whatever_its_score() -> None:
    at = trapped()
    for number in range(0, 32, 4):
        strategy = ProTuner(trees=1, explorations=4, rollouts=16)
        offered = strategy.ask(replace(at, rng=np.random.default_rng(3)), 16).best
        fastest = offered[number]
        strategy.tell([(c, ok(1.0 if c is fastest else 2.0)) for c in offered])
        [root] = strategy.roots
        [(name, value)] = root.decided
        assert fastest.row[fastest.sketch.columns.index(str(name))] == value


def test_options_that_the_first_programs_missed_are_tried() -> None:
    at = trapped()
    start = begin(at.source)
    options = {option.decided[0][1] for option in start.options}
    [sketch] = at.source.draw(1, at.rng)
    column = sketch.columns.index(str(start.options[0].decided[0][0]))
    model = Noting(column)
    at.model = model
    ProTuner(trees=1, explorations=1, rollouts=len(options)).ask(at, 8)
    assert len(model.taken) < len(options)
    ProTuner(trees=1, explorations=64, rollouts=len(options), patience=64).ask(at, 8)
    assert model.taken == options


class Noting(BowlModel):
    """Notes the values of a column that it scores."""

    def __init__(self, column: int) -> None:
        super().__init__()
        self.column = column
        self.taken: set[int] = set()

    def predict(self, task: Task, programs: Programs) -> Floats:
        self.taken |= set(programs.table[:, self.column].tolist())
        return super().predict(task, programs)


def test_what_was_expanded_is_kept_only_as_long_as_it_is_needed() -> None:
    at, strategy = trapped(), ProTuner(trees=2, explorations=4, rollouts=8)
    measured(strategy, at, predicted, rounds=1, n=4)
    passed = [ref(root) for root in strategy.roots]
    assert len(passed) == 2
    measured(strategy, at, predicted, rounds=1, n=4)
    gc.collect()
    assert not any(root() for root in passed)
    source, beam = Watched(recorded()), Beam(width=2, rollouts=8)
    assert beam.ask(Context(at.task, source, AnalyticModel(), at.rng), 4).best
    gc.collect()
    assert source.begun and not any(partial() for partial in source.begun)


class Watched(GridSource):
    """A grid's source that remembers the partial sketches it gave, without keeping them."""

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid)
        self.begun: list[ref[PartialSketch]] = []

    def begin(self, number: int) -> PartialSketch:
        begun = super().begin(number)
        self.begun.append(ref(begun))
        return begun


@pytest.mark.parametrize("strategy", [Beam(), ProTuner()])
def test_a_space_of_one_program_is_offered(strategy: Strategy) -> None:
    grid = replace(recorded(), rows=recorded().rows[:1])
    at = Context(grid.task, GridSource(grid), AnalyticModel(), np.random.default_rng(0))
    [only] = measured(strategy, at, predicted, rounds=3)
    np.testing.assert_array_equal(only.row, grid.rows[0])


@pytest.mark.parametrize("width", [1, 6])
def test_beams_end_with_whole_programs(width: int) -> None:
    at = trapped()
    pool = Beam(width=width, rollouts=16).ask(at, 8)
    assert pool.best and all(c.sketch.space.contains(c.row) for c in pool.best)
    assert [c.score for c in pool.best] == sorted((c.score for c in pool.best), reverse=True)
