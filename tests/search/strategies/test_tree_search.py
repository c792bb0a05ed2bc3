"""Beam search, greedy decoding and Monte-Carlo tree search over prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import StaticModel
from ansorpy.ir.task import Task
from ansorpy.search.prefix import begin
from ansorpy.search.strategies.beam import Beam
from ansorpy.search.strategies.protuner import ProTuner
from ansorpy.search.strategy import Context
from benchmarks.spaces.grid_source import GridSource
from tests.benchmarks.spaces.grids import grid_of
from tests.search.asking import measured, predicted
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


def trapped() -> Context:
    task = matmul(24, 32, 16)
    source = GridSource(grid_of(task, points=400))
    return Context(task, source, Trap(source), np.random.default_rng(3))


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


@pytest.mark.parametrize("width", [1, 6])
def test_beams_end_with_whole_programs(width: int) -> None:
    at = trapped()
    pool = Beam(width=width, rollouts=16).ask(at, 8)
    assert pool.best and all(c.sketch.space.contains(c.row) for c in pool.best)
    assert [c.score for c in pool.best] == sorted((c.score for c in pool.best), reverse=True)
