"""Cost models are compared by how they rank recorded spaces."""

from __future__ import annotations

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.random import RandomModel
from benchmarks.spaces.rank import evaluated
from tests.benchmarks.spaces.grids import grid_of
from tests.search.tasks import matmul


def test_models_are_compared_on_recorded_spaces() -> None:
    grids = [grid_of(matmul(24, 40, 36))]
    [found] = evaluated("analytic", AnalyticModel(), grids)
    assert found.programs == min(600, len(grids[0].rows)) and found.figures.correlation > 0.2
    [drawn] = evaluated("random", RandomModel(), grids)
    assert drawn.figures.pairs < found.figures.pairs
