"""Sort short rows by comparing all pairs, as machines without routines can.

top_places(x)[r, k]   -->   the i for which k elements of x[r] come before x[r, i]
"""

from __future__ import annotations

import numpy as np

from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Cast, Computed, Cumulative, Fn, Iota, Reduce, ReduceOp
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import most
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.top import TopPlaces

__all__ = ["without_routines"]

_MOST = 1024
"""Comparing all pairs of this many elements takes about 0.1 ms on a CPU core."""


def without_routines(graph: Graph) -> Graph:
    """*graph* with formulas for the routines that have one."""
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if _is_short(graph, node):
            chosen = _Ranked(builder, f"{node.output}.rank").places(node)
            node = Node(Cast(DType.INT64), (chosen,), node.output)
        elif isinstance(node.op, Computed) and isinstance(node.op.routine, Prefixes):
            of = node.op.routine
            kind = ReduceOp.PROD if of.product else ReduceOp.SUM
            formula = Cumulative(kind, 1, of.exclusive, of.backwards)
            node = Node(formula, node.inputs, node.output)
        builder.add_node(node)
    return builder.finish(graph.outputs)


def _is_short(graph: Graph, node: Node) -> bool:
    if not isinstance(node.op, Computed) or not isinstance(node.op.routine, TopPlaces):
        return False
    return 1 < most(graph.types[node.inputs[0]].shape[1]) <= _MOST


class _Ranked(EmitsBeside):
    def places(self, node: Node) -> str:
        """The places of the elements with the first ranks, as int32."""
        assert isinstance(node.op, Computed) and isinstance(node.op.routine, TopPlaces)
        (x,) = node.inputs
        rows, n = self.builder.types[x].shape
        rank = self.reshape(self._ranks(x, largest=node.op.routine.largest), (rows, 1, n))
        wanted = self.emit(Iota((node.op.shape[1], 1), dtype=DType.INT32), ())
        place = self.emit(Iota((n,), dtype=DType.INT32), ())
        found = self.apply(Fn.EQUAL, rank, wanted)
        chosen = self.apply(Fn.WHERE, found, place, self.literal(np.asarray(0), DType.INT32))
        return self.emit(Reduce(ReduceOp.SUM, (2,), False), [chosen])

    def _ranks(self, x: str, *, largest: bool) -> str:
        """The number of elements before each one of a row, as int32."""
        rows, n = self.builder.types[x].shape
        own, other = self.reshape(x, (rows, n, 1)), self.reshape(x, (rows, 1, n))
        low, high = (own, other) if largest else (other, own)
        columns, lines = (self.emit(Iota(shape), ()) for shape in ((n,), (n, 1)))
        earlier = self.apply(Fn.LESS, columns, lines)  # the other element comes first
        above = self.apply(Fn.NOT, self._at_most(high, low))
        before = self.apply(Fn.WHERE, earlier, self._at_most(low, high), above)
        counted = self.emit(Cast(DType.INT32), [before])
        return self.emit(Reduce(ReduceOp.SUM, (2,), False), [counted])

    def _at_most(self, a: str, b: str) -> str:
        """Whether *a* is at most *b*; a NaN is above all numbers, so that all have a rank."""
        found = self.apply(Fn.LESS_EQUAL, a, b)
        if not self.builder.types[b].dtype.is_float:
            return found
        return self.apply(Fn.OR, found, self.apply(Fn.IS_NAN, b))
