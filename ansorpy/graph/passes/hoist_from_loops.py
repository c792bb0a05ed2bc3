"""Compute once what is the same in all iterations of a loop, and together what needs only its rows.

while ..: h = f(h, w + b)              -->   c = w + b;  while ..: h = f(h, c)
for x[t] in x: h = f(h, x[t] · w)      -->   y = x · w;  for y[t] in y: h = f(h, y[t])

A product of all rows reads the matrix once and runs on all threads; what remains in the loop is
what one iteration needs of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansorpy.graph.ir import Graph, GraphBuilder, Node, needed
from ansorpy.graph.ops import Gather, Iota, Movement, Transpose
from ansorpy.graph.ops.base import Pattern
from ansorpy.graph.ops.sizes import SizesOp
from ansorpy.graph.passes.lifted import Operand, is_liftable, lifted
from ansorpy.graph.passes.loop_parts import (
    LoopParts,
    invariant_values,
    is_counted,
    outer,
    with_changed_loops,
)
from ansorpy.graph.regions import LoopRegion, Result
from ansorpy.ir.extents import most

__all__ = ["hoist_from_loops"]

_GROWTH = 2
"""Arithmetic whose result is larger than this many times its operands is left to its readers."""


def hoist_from_loops(graph: Graph) -> Graph:
    """*graph* whose loops do only what differs from iteration to iteration, inner loops first."""
    return with_changed_loops(graph, _Hoisted)


class _Hoisted:
    """A loop without what was computed before it, and its operands.

    Args:
        builder: Where the loop's own nodes are, and what is hoisted is emitted.
    """

    def __init__(self, builder: GraphBuilder, region: LoopRegion, operands: Sequence[str]):
        self.builder = builder
        self.body = body = region.body
        self._parts = LoopParts.of(region, operands)
        self._nodes = body.producers()
        self._trips = region.trips
        self._is_last = dict(zip(self._parts.inside.read, region.read, strict=True))
        may_end = region.has_limit or region.has_start or region.has_condition
        is_whole = region.trips is not None and not may_end and not region.is_bounded
        self._same = invariant_values(body, self._parts.inside.others)
        self._heavy = set[str]()
        self._along = self._by_rows() if is_whole else {}
        self._kept = self._worthwhile()
        self.region, self.operands = self._rebuilt(region)

    def node(self, index: int, name: str) -> Node:
        """The node that computes result number *index* of the loop as the value *name*."""
        return Node(Result(self.region, index), self.operands, name)

    def _by_rows(self) -> dict[str, bool]:
        """The values that need only rows, by whether the last one comes first.

        Those that take sums over many elements are heavy, and so is what is computed from them.
        """
        found = {**self._is_last, self._parts.inside.first[0]: False}  # the number is a row, too
        for node in self.body.nodes:
            ways = {found[name] for name in node.inputs if name in found}
            known = all(name in found or name in self._same for name in node.inputs)
            rows = [name in found for name in node.inputs]
            if (
                known and len(ways) == 1 and is_liftable(node.op, rows)
                and not is_counted(self.body, node)
            ):  # fmt: skip
                found[node.output] = ways.pop()
                sums = node.op.pattern >= Pattern.REDUCTION
                if sums or not self._heavy.isdisjoint(node.inputs):
                    self._heavy.add(node.output)
        return found

    def _worthwhile(self) -> set[str]:
        """The values to compute outside; what they need is computed there, too.

        Movements and cheap arithmetic are left to their readers in the body, but perhaps not what
        they read.
        """
        early = self._same | self._along.keys()
        left = [name for node in self.body.nodes if node.output not in early
                for name in node.inputs]  # fmt: skip
        left += [output.value for output in self.body.outputs]
        kept, seen = set[str](), set[str]()
        while left:
            name = left.pop()
            node = self._nodes.get(name)
            if name in seen or name not in early or node is None:
                continue
            seen.add(name)
            if name in self._heavy or (name in self._same and not self._is_cheap(node)):
                kept.add(name)
            else:
                left += node.inputs
        return kept

    def _is_cheap(self, node: Node) -> bool:
        """Whether readers may as well compute *node*, which is the same in all iterations."""
        if isinstance(node.op, Movement | SizesOp | Gather):
            return not isinstance(node.op, Transpose)
        sizes = [most(self.body.types[name].size) for name in node.inputs]
        grows = most(self.body.types[node.output].size) > _GROWTH * max(sizes, default=0)
        return node.op.pattern is Pattern.ELEMENTWISE and grows

    def _emitted(self) -> dict[str, str]:
        """The values outside by those of the body that they are, or whose rows they are."""
        nodes, read = needed(self.body.nodes, self._kept)
        found, (number, *_) = self._parts.places, self._parts.inside.first
        if number in read and self._trips is not None:
            found[number] = self.builder.emit(Iota((self._trips,)), (), number)
        for name, array in self.body.constants.items():
            if name in read:
                found[name] = self.builder.add_constant(name, array)
        for node in nodes:
            rows = [name in self._along for name in node.inputs]
            emit = self._lifted if any(rows) else outer
            found[node.output] = emit(self.builder, node, found)
        return found

    def _lifted(self, builder: GraphBuilder, node: Node, found: Mapping[str, str]) -> str:
        types = self.body.types
        operands = [
            Operand(found[name], types[name].shape, name in self._along) for name in node.inputs
        ]
        (count, *_) = (builder.types[o.value].shape[0] for o in operands if o.is_row)
        return lifted(builder, node.op, operands, types[node.output], count, node.output)

    def _rebuilt(self, region: LoopRegion) -> tuple[LoopRegion, tuple[str, ...]]:
        """The loop that reads what is kept, instead of computing it, and its operands."""
        if not self._kept:
            return region, self._parts.outside.all
        body, inside, found = self.body, self._parts.inside, self._emitted()
        nodes, read = needed(body.nodes, [output.value for output in body.outputs], self._kept)
        made = [node.output for node in body.nodes if node.output in self._kept & read]
        ways = {**self._along, **self._is_last}
        rows = [name for name in (*inside.read, *made) if name in ways and name in read]
        others = [name for name in (*inside.others, *made) if name not in ways and name in read]
        more = {name: (found[name], ways.get(name, False)) for name in made}
        return self._parts.changed(
            region, body.outputs, nodes, read, rows, others, more, region.written
        )
