"""Values that follow from sizes belong to their readers."""

from __future__ import annotations

from ansorpy.graph.ir import GraphBuilder, Output
from ansorpy.graph.ops import Elementwise, Fn, Iota, Reshape, TensorType
from ansorpy.graph.passes.repeat_sizes import repeat_sizes
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim

N = dim("n", 1, 40)


def test_every_reader_has_its_own_in_the_shape_that_it_reads() -> None:
    builder = GraphBuilder()
    x = builder.add_input("x", TensorType((N, N), DType.INT64))
    rows = builder.emit(Iota((N,)), (), "rows")
    column = builder.emit(Reshape((N, 1)), [rows], "column")
    a = builder.emit(Elementwise(Fn.ADD), [x, column], "a")
    b = builder.emit(Elementwise(Fn.ADD), [a, rows], "b")
    c = builder.emit(Elementwise(Fn.ADD), [b, rows], "c")
    graph = repeat_sizes(builder.finish([Output("c", c), Output("rows", rows)]))
    made = [node.op for node in graph.nodes if not node.inputs]
    assert [op.infer([]).shape for op in made] == [(N,), (N, 1), (N,), (N,)]
    assert not any(isinstance(node.op, Reshape) for node in graph.nodes)
