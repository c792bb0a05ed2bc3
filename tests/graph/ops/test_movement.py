"""A movement read in place equals the stage that stores it."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph.ops import Reshape, Shuffle, Slice, Transpose
from ansorpy.graph.ops.movement import Moved, Movement
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder

MOVES = [
    Transpose((2, 0, 1)),
    Reshape((4, 30)),
    Reshape((5, 1, 24)),
    Reshape((1, 4, 6, 5)),
    Slice((3, 0, 5), (2, 3, 2), (-2, 1, -3)),
    Shuffle(2, (2, 3), (1, 0)),
    Shuffle(0, (2, 2), (1, 0)),
    Shuffle(2, (1, 3, 2), (2, 0, 1)),
]


@pytest.mark.parametrize("op", MOVES, ids=str)
def test_stage_index_map_and_numpy_agree(op: Movement) -> None:
    x = placeholder((4, 5, 6), name="x")
    stored = op.define([x], Names())
    in_place = Moved(op, x)
    assert in_place.shape == stored.shape
    read = compute(
        stored.shape,
        lambda *i: in_place[i] * 1.0,
        name="y",
        names=[f"i{d}" for d in range(stored.ndim)],
    )
    values = np.random.default_rng(1).standard_normal((4, 5, 6)).astype(np.float32)
    expected = op.evaluate([values])
    assert expected is not None
    for result in (stored, read):
        (got,) = run_dag(ComputeDAG([result]), {"x": values})
        np.testing.assert_array_equal(got, expected)


def test_movements_compose_without_stages() -> None:
    x = placeholder((4, 6), name="x")
    both = Moved(Transpose((1, 0)), Moved(Shuffle(1, (2, 3), (1, 0)), x))
    y = compute((6, 4), lambda i, j: both[i, j] + 0.0, name="y")
    assert [op.name for op in ComputeDAG([y]).ops] == ["x", "y"]
