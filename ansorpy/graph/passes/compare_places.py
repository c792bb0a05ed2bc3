"""Scatter by comparing each element with all places, as machines without routines can.

scatter_sum(x, places, updates)   -->   x + the sum of the updates with the element's place
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import (
    Computed,
    Elementwise,
    Expand,
    Fn,
    GatherElements,
    Iota,
    ReduceOp,
    Scatter,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import most, prod_of
from ansorpy.ir.routines.scatters import (
    ScatterMax,
    ScatterMin,
    ScatterProduct,
    Scatters,
    ScatterSum,
)

__all__ = ["compare_places"]

_MOST = 1 << 33
"""So many comparisons take some tenths of a second."""
_REDUCED: Mapping[type[Scatters], tuple[Fn, ReduceOp]] = {
    ScatterMax: (Fn.MAX, ReduceOp.MAX), ScatterMin: (Fn.MIN, ReduceOp.MIN),
    ScatterProduct: (Fn.MUL, ReduceOp.PROD), ScatterSum: (Fn.ADD, ReduceOp.SUM),
}  # fmt: skip


def compare_places(graph: Graph) -> Graph:
    """*graph* with formulas for scatters that do not compare too much."""
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        builder.add_node(_Compared(builder, f"{node.output}.scatter").formula(node))
    return builder.finish(graph.outputs)


class _Compared(EmitsBeside):
    def formula(self, node: Node) -> Node:
        """The node that computes the result of the scatter *node*; other nodes are returned."""
        if not isinstance(node.op, Computed) or not isinstance(node.op.routine, Scatters):
            return node
        data, places, updates = node.inputs
        shape = node.op.shape
        if most(prod_of((*shape, self.builder.types[updates].shape[1]))) > _MOST:
            return node
        kind = type(node.op.routine)
        if kind in _REDUCED:
            fn, reduction = _REDUCED[kind]
            total = self.emit(Scatter(reduction, 1, shape[1]), [places, updates])
            return Node(Elementwise(fn), (data, total), node.output)
        order = self.emit(Iota((1, self.builder.types[updates].shape[1], 1), dtype=DType.INT32), ())
        last = self.emit(Scatter(ReduceOp.MAX, 1, shape[1]), [places, order])
        none = self.literal(np.asarray(0), DType.INT32)
        given = self.apply(Fn.LESS_EQUAL, none, last)
        source = self.cast(self.apply(Fn.MAX, last, none), DType.INT64)
        if self.builder.types[source].shape != shape:
            source = self.emit(Expand(shape), [source])
        found = self.emit(GatherElements(1), [updates, source])
        return Node(Elementwise(Fn.WHERE), (given, found, data), node.output)
