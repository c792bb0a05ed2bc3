"""Values that follow from sizes: their definitions at sizes, alone and fused into readers."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph import optimize
from ansorpy.graph.fusion import fuse
from ansorpy.graph.ir import GraphBuilder, Output
from ansorpy.graph.ops import Elementwise, Fn, Iota, Reshape, Sizes, TensorType
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.sizes import SizesOp
from ansorpy.graph.placement import place_values
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.tensor import compute, placeholder

N = dim("n", 0, 40)
SAMPLES: list[tuple[SizesOp, list[int]]] = [
    (Sizes((3,), (N, N * 2 + 1, 3)), [7, 15, 3]),
    (Sizes((), (N // 2,), DType.INT32), [3]),
    (Sizes((17, 1), tuple(N + k for k in range(17))), [*range(7, 24)]),
    (Iota((N,)), [*range(7)]),
    (Iota((3,), N, -2), [7, 5, 3]),
    (Iota((1, N + 1, 1), 1, N, DType.INT32), [1, 8, 15, 22, 29, 36, 43, 50]),
    (Iota((2, N), dtype=DType.FLOAT32), [*range(14)]),
]


@pytest.mark.parametrize(("op", "want"), SAMPLES, ids=str)
def test_elements_follow_from_sizes(op: SizesOp, want: list[int]) -> None:
    """The size of n is told by an operand that is not read otherwise."""
    assert op.evaluate([]) is None
    told = placeholder((N,), name="told")
    stage = op.define([], Names())
    assert stage.dtype is op.infer([]).dtype
    other = compute((N,), lambda i: told[i], name="other")
    (n,) = N.dims  # type: ignore[union-attr]
    dag = dag_at(ComputeDAG([stage, other], [told]), {n: 7})
    found, _ = run_dag(dag, {"told": np.zeros(7, np.float32)})
    np.testing.assert_array_equal(found.reshape(-1), want)


def test_numbers_are_constants() -> None:
    builder = GraphBuilder()
    a = builder.emit(Iota((5,), 1, 2), (), "a")
    b = builder.emit(Sizes((), (4,), DType.INT32), (), "b")
    np.testing.assert_array_equal(builder.constants[a], [1, 3, 5, 7, 9])
    assert builder.constants[b].shape == () and builder.constants[b].dtype == np.int32


def test_they_are_computed_by_their_readers() -> None:
    builder = GraphBuilder()
    x = builder.add_input("x", TensorType((N, 8), DType.INT64))
    rows = builder.emit(Iota((N,)), (), "rows")
    column = builder.emit(Reshape((N, 1)), [rows], "column")
    y = builder.emit(Elementwise(Fn.ADD), [x, column], "y")
    z = builder.emit(Elementwise(Fn.MUL), [y, builder.emit(Sizes((1,), (N,)), (), "s")], "z")
    graph = optimize(builder.finish([Output("z", z)]))
    assert len(fuse(graph, place_values(graph).views)) == 1
