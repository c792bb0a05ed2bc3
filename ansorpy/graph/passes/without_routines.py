"""Formulas in place of routines, for machines that have none.

top_places(x)[r, k]               -->   the i for which k elements of x[r] come before x[r, i]
prefixes(x)                       -->   sums of all elements up to each one
inverse(x)[i]                     -->   the sum of the places at which x is i, which is one place
scatter_sum(x, places, updates)   -->   x + the sum of the updates with the element's place

They compare all pairs of elements, or each element with all places.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import (
    Cast,
    Computed,
    Cumulative,
    Elementwise,
    Expand,
    Fn,
    GatherElements,
    Iota,
    Reduce,
    ReduceKind,
    Scatter,
    Shape,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import most, prod_of
from ansorpy.ir.routines.places import Inverse
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.scatters import (
    ScatterMax,
    ScatterMin,
    ScatterProduct,
    Scatters,
    ScatterSum,
)
from ansorpy.ir.routines.top import TopPlaces

__all__ = ["without_routines"]

_MOST = 1024
"""Comparing all pairs of this many elements takes about 0.1 ms on a CPU core."""
_MOST_PLACES = 1 << 33
"""So many comparisons of elements with places take some tenths of a second."""
_REDUCED: Mapping[type[Scatters], tuple[Fn, ReduceKind]] = {
    ScatterMax: (Fn.MAX, ReduceKind.MAX), ScatterMin: (Fn.MIN, ReduceKind.MIN),
    ScatterProduct: (Fn.MUL, ReduceKind.PROD), ScatterSum: (Fn.ADD, ReduceKind.SUM),
}  # fmt: skip


def without_routines(graph: Graph) -> Graph:
    """*graph* with formulas for the routines that have one, unless it compares too much."""
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        builder.add_node(_formula(builder, node))
    return builder.finish(graph.outputs)


def _formula(builder: GraphBuilder, node: Node) -> Node:
    """The node that computes the result of *node*, a routine with a formula, or *node* itself."""
    match node.op:
        case Computed(routine=TopPlaces()) if (
            most(builder.types[node.inputs[0]].shape[1]) <= _MOST
        ):  # fmt: skip
            chosen = _Ranked(builder, f"{node.output}.rank").places(node)
            return Node(Cast(DType.INT64), (chosen,), node.output)
        case Computed(routine=Prefixes() as of):
            kind = ReduceKind.PROD if of.product else ReduceKind.SUM
            return Node(Cumulative(kind, 1, of.exclusive, of.backwards), node.inputs, node.output)
        case Computed(routine=Inverse(), shape=(n,)) if most(n * n) <= _MOST_PLACES:
            numbers = builder.emit(Iota((n,)), (), f"{node.output}.places")
            return Node(Scatter(ReduceKind.SUM, 0, n), (node.inputs[0], numbers), node.output)
        case Computed(routine=Scatters() as routine, shape=shape) if (
            most(prod_of((*shape, builder.types[node.inputs[2]].shape[1]))) <= _MOST_PLACES
        ):  # fmt: skip
            return _Compared(builder, f"{node.output}.scatter").formula(node, type(routine), shape)
    return node


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
        return self.emit(Reduce(ReduceKind.SUM, (2,), False), [chosen])

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
        return self.emit(Reduce(ReduceKind.SUM, (2,), False), [counted])

    def _at_most(self, a: str, b: str) -> str:
        """Whether *a* is at most *b*; a NaN is above all numbers, so that all have a rank."""
        found = self.apply(Fn.LESS_EQUAL, a, b)
        if not self.builder.types[b].dtype.is_float:
            return found
        return self.apply(Fn.OR, found, self.apply(Fn.IS_NAN, b))


class _Compared(EmitsBeside):
    def formula(self, node: Node, kind: type[Scatters], shape: Shape) -> Node:
        """The node that computes the result of the scatter *node*, of this *kind*."""
        data, places, updates = node.inputs
        if kind in _REDUCED:
            fn, reduction = _REDUCED[kind]
            total = self.emit(Scatter(reduction, 1, shape[1]), [places, updates])
            return Node(Elementwise(fn), (data, total), node.output)
        order = self.emit(Iota((1, self.builder.types[updates].shape[1], 1), dtype=DType.INT32), ())
        last = self.emit(Scatter(ReduceKind.MAX, 1, shape[1]), [places, order])
        none = self.literal(np.asarray(0), DType.INT32)
        given = self.apply(Fn.LESS_EQUAL, none, last)
        source = self.cast(self.apply(Fn.MAX, last, none), DType.INT64)
        if self.builder.types[source].shape != shape:
            source = self.emit(Expand(shape), [source])
        found = self.emit(GatherElements(1), [updates, source])
        return Node(Elementwise(Fn.WHERE), (given, found, data), node.output)
