"""Whole tables of real placed sketches: each candidate has the numbers its program has alone."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.learner import SHARES, statement_rows
from ansorpy.cost.nest_view import view_nest
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.search.population import sample_valid
from ansorpy.target import Target
from tests import workloads
from tests.rules.algorithms.convolutions import convolution

CASES = {
    "matmul": workloads.matmul(60, 64, 48, constant=True),
    "winograd": convolution((14, 13), (3, 3), 32, 48, pad=1),
    "softmax": workloads.softmax(),
    "transposed": workloads.transposed_conv1d(),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_of_drawn_sketches_equal_their_programs_alone(
    name: str, rng: np.random.Generator
) -> None:
    tensors: list[Tensor] = CASES[name]
    task = Task(ComputeDAG.of(tensors), Target.parse("x86-64-v4"), 2)
    model = AnalyticModel()
    for sketch in SketchSampler(task).draw(6, rng):
        table = sample_valid(sketch, 24, rng)
        table = np.concatenate([table, table[::-2]])  # so that settings repeat
        views = view_nest(sketch.space.nest(table), len(table))
        _, statements = statement_rows(task, views)
        shares = statements[:, :, SHARES]
        assert shares.any() and (shares >= 0).all() and (shares <= 1).all()
        seconds = model.seconds(task, views)
        for row in range(0, len(table), 9):
            alone = view_nest(build_nest(sketch.resolve(table[row]), {}), 1)
            np.testing.assert_array_equal(statements[row], statement_rows(task, alone)[1][0])
            assert seconds[row] == model.seconds(task, alone)[0]


def test_a_statement_has_the_settings_it_depends_on_only(rng: np.random.Generator) -> None:
    """Padding, a stage of its own, does not depend on how the convolution is tiled."""
    tensors = convolution((14, 13), (3, 3), 32, 48, pad=1)
    task = Task(ComputeDAG.of(tensors), Target.parse("x86-64-v4"), 2)
    sampler = SketchSampler(task)
    fewer = 0
    for sketch in sampler.draw(len(sampler.pairs), rng):
        table = sample_valid(sketch, 200, rng)
        for view in view_nest(sketch.space.nest(table), len(table)):
            assert view.rows <= len(table)
            fewer += view.rows < len(table) / 4
    assert fewer
