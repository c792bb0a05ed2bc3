"""Tensors that repeat one number are read as that number."""

from __future__ import annotations

import numpy as np

from ansorpy.graph.ir import GraphBuilder, Output
from ansorpy.graph.ops import (
    Cast,
    Concat,
    Elementwise,
    Expand,
    Fn,
    Gather,
    TensorType,
    Transpose,
)
from ansorpy.graph.passes.read_fills import read_fills
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim

N = dim("n", 1, 40)


def builder() -> tuple[GraphBuilder, str, str]:
    """A builder with an input ``[n, 8]``, and ones of the same shape."""
    made = GraphBuilder()
    x = made.add_input("x", TensorType((N, 8), DType.FLOAT32))
    one = made.add_constant("one", np.ones((1, 1), np.float32))
    return made, x, made.emit(Expand((N, 8)), [one], "ones")


def test_arithmetic_reads_the_number() -> None:
    made, x, ones = builder()
    wide = made.emit(Cast(DType.INT32), [made.emit(Transpose((1, 0)), [ones], "turned")], "wide")
    back = made.emit(Transpose((1, 0)), [made.emit(Cast(DType.FLOAT32), [wide], "f")], "back")
    off = made.emit(
        Elementwise(Fn.SUB), [back, made.add_constant("c", np.asarray([3], np.float32))], "off"
    )
    graph = read_fills(made.finish([Output("y", made.emit(Elementwise(Fn.MUL), [x, off], "y"))]))
    [node] = graph.nodes
    assert node.op == Elementwise(Fn.MUL) and graph.constants[node.inputs[1]] == np.float32(-2)


def test_what_needs_the_tensor_keeps_it() -> None:
    """A result has the shape of its fill alone; a concatenation reads all elements."""
    made, x, ones = builder()
    row = made.add_input("row", TensorType((1, 8), DType.FLOAT32))
    wide = made.emit(Elementwise(Fn.ADD), [row, ones], "wide")
    both = made.emit(Concat(0), [wide, ones, x], "both")
    graph = read_fills(made.finish([Output("y", both)]))
    assert [type(node.op) for node in graph.nodes] == [Expand, Elementwise, Concat]


def test_a_gather_reads_the_number() -> None:
    made, _, ones = builder()
    rows = made.add_input("rows", TensorType((N,), DType.INT64))
    graph = read_fills(made.finish([Output("y", made.emit(Gather(0), [ones, rows], "y"))]))
    [node] = graph.nodes
    assert node.op == Expand((N, 8)) and graph.constants[node.inputs[0]] == 1
