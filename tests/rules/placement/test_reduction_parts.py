"""DrawReductionParts: the number of parts fills the grid."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.tensor import Tensor
from ansorpy.rules.placement.reduction_parts import DrawReductionParts
from ansorpy.rules.sketch.split_reduction import SplitReduction
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.schedule.state import State
from tests import workloads
from tests.rules.asking import CUDA as GPU
from tests.rules.asking import derive, outcomes


@pytest.mark.parametrize(
    ("tensors", "stage"),
    [
        (workloads.matmul(49, 130, 1536), "C"),
        (workloads.min_reduce(3, 1 << 16), "B"),
        (workloads.matrix_norm(1, 263, 67), "squares"),
    ],
)
def test_each_number_that_fills_the_grid_occurs(
    tensors: list[Tensor], stage: str, rng: np.random.Generator
) -> None:
    rule, state = DrawReductionParts(), State.initial(tensors)
    wanted = ReductionParts().counts(state, state.stage(stage), GPU)
    assert len(wanted) > 2
    [(split, _)] = derive(SplitReduction(), tensors, stage, GPU)
    drawn = {_parts(rule.draw(split, GPU, rng), stage) for _ in range(100)}
    assert sorted(drawn) == wanted
    assert [_parts(placed, stage) for placed in outcomes(rule, split, GPU)] == wanted


def test_states_without_parts_are_left_alone(rng: np.random.Generator) -> None:
    state, _ = State.initial(workloads.matmul(8, 8, 8)).split("C", "k", (2,))
    assert DrawReductionParts().draw(state, GPU, rng) is state
    assert not DrawReductionParts().subjects(state)


def _parts(state: State, stage: str) -> int:
    return state.stage(f"{stage}.rf").compute.axes[0].extent
