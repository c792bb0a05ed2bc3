"""Compute rows of all iterations together, behind a loop, if no later iteration needs them.

for ..: h = f(h);  y[t] = h · v        -->   for ..: h = f(h), s[t] = h;  y = s · v
for x[t] in x: y[t] = x[t], ..         -->   for x[t] in x: ..;  y = x

A product of all rows reads the matrix once, and runs on all threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.ir import Graph, GraphBuilder, Node, Output, needed
from ansorpy.graph.ops import Reshape
from ansorpy.graph.ops.base import Pattern
from ansorpy.graph.passes.lifted import Operand, is_liftable, lifted
from ansorpy.graph.passes.loop_parts import (
    LoopParts,
    emitted_outside,
    invariant_values,
    is_counted,
    with_changed_loops,
)
from ansorpy.graph.regions import LoopRegion, Result
from ansorpy.ir.extents import most

__all__ = ["sink_from_loops"]

_GROWTH = 4
"""More than so many times the elements of the results are not stored for them."""


def sink_from_loops(graph: Graph) -> Graph:
    """*graph* whose loops write rows that need further sums as they are before these."""
    return with_changed_loops(graph, _Sunk)


class _Sunk:
    """A loop that writes what further rows are computed from, and these rows.

    Args:
        builder: Where the loop's own nodes are, and what is sunk is emitted.
    """

    def __init__(self, builder: GraphBuilder, region: LoopRegion, operands: Sequence[str]):
        self.builder = builder
        self.old = region
        self.body = region.body
        self.parts = LoopParts.of(region, operands)
        self._same = invariant_values(self.body, self.parts.inside.others)
        first = region.has_condition + region.carried
        self._kept = self.body.returned[:first]
        self._rows = self.body.returned[first:]
        self._counts = self.body.outputs[len(self.body.returned) :]
        self._given = self._read_rows()
        self._sunk = self._after() if len(set(region.written)) == 1 else set[str]()
        self._made: dict[str, str] = {}
        self._results: dict[int, str] = {}
        """The value that is each result of the new loop."""
        self.region, self.operands = self._rebuilt()

    def node(self, index: int, name: str) -> Node:
        """The node that computes result number *index* of the old loop as the value *name*."""
        row = index - self.old.carried
        if self.region is self.old:
            return Node(Result(self.old, index), self.operands, name)
        if 0 <= row < len(self._rows):
            value = self._rows[row].value
            if value in self._given or value in self._sunk:
                return self._same_as(self._outside()[value], name)
            index = self.old.carried + self._written.index(value)
        elif row >= 0:  # the number of iterations, which comes last
            index = len(self.region.types()) - 1
        if index in self._results:
            return self._same_as(self._results[index], name)
        self._results[index] = name
        return Node(Result(self.region, index), self.operands, name)

    def _same_as(self, value: str, name: str) -> Node:
        """A node that gives *value* the name *name*, too."""
        return Node(Reshape(self.builder.types[value].shape), (value,), name)

    def _read_rows(self) -> dict[str, str]:
        """The tensors outside whose rows are written as they are read, by these rows."""
        old, ways = self.old, set(self.old.written)
        if old.has_limit or old.has_start or old.has_condition:
            return {}
        read = zip(self.parts.inside.read, self.parts.outside.read, old.read, strict=True)
        return {name: whole for name, whole, is_last in read if ways == {is_last}}

    def _after(self) -> set[str]:
        """The values that are computed behind the loop: sums, and what is computed from them."""
        inside = {output.value for output in (*self._kept, *self._counts)}
        rows = {output.value for output in self._rows}
        read = {*rows, *(name for node in self.body.nodes for name in node.inputs)}
        free = set[str]()
        for node in reversed(self.body.nodes):
            changes = [name not in self._same for name in node.inputs]
            is_free = node.output in read and node.output not in inside and any(changes)
            if (
                is_free and is_liftable(node.op, changes) and not is_counted(self.body, node)
            ):  # fmt: skip
                free.add(node.output)
            else:
                inside.update(node.inputs)
        found = set[str]()
        for node in self.body.nodes:
            sums = node.op.pattern >= Pattern.REDUCTION
            if node.output in free and (sums or not found.isdisjoint(node.inputs)):
                found.add(node.output)
        return found if self._is_worth_it(found) else set()

    def _is_worth_it(self, sunk: set[str]) -> bool:
        """Whether what has to be stored instead of *sunk* rows is not much more."""
        types = self.body.types
        more = sum(most(types[name].size) for name in self._frontier(sunk))
        less = sum(most(types[o.value].size) for o in self._rows if o.value in sunk)
        return more <= _GROWTH * less

    def _frontier(self, sunk: set[str]) -> list[str]:
        """What differs between iterations and *sunk* values are computed from."""
        read = [n for node in self.body.nodes if node.output in sunk for n in node.inputs]
        return [n for n in dict.fromkeys(read) if n not in sunk and n not in self._same]

    def _rebuilt(self) -> tuple[LoopRegion, tuple[str, ...]]:
        old, body = self.old, self.body
        stay = [o.value for o in self._rows if o.value not in self._sunk | self._given.keys()]
        stored = [n for n in self._frontier(self._sunk) if n not in self._given]
        self._written = list(dict.fromkeys([*stay, *stored]))
        is_mixed = len(set(old.written)) > 1
        if is_mixed or self._written == [o.value for o in self._rows]:
            return old, self.parts.outside.all
        outputs = [*self._kept, *(Output("", value) for value in self._written)]
        named = (*(Output(f"made.{n}", o.value) for n, o in enumerate(outputs)), *self._counts)
        nodes, read = needed(body.nodes, [o.value for o in named])
        inside = self.parts.inside
        rows = [name for name in inside.read if name in read]
        others = [name for name in inside.others if name in read]
        way = old.written[:1] * len(self._written)
        return self.parts.changed(old, named, nodes, read, rows, others, {}, written=way)

    def _outside(self) -> dict[str, str]:
        """The values outside by those of the body that are stored or sunk."""
        if self._made:
            return self._made
        found = self._made
        found |= self._given
        for name in self._frontier(self._sunk):
            if name not in found:
                index = self.old.carried + self._written.index(name)
                if index not in self._results:
                    op = Result(self.region, index)
                    value = self.builder.emit(op, self.operands, f"{name}.all")
                    self._results[index] = value
                found[name] = self._results[index]
        read = {n for node in self.body.nodes if node.output in self._sunk for n in node.inputs}
        same = emitted_outside(self.builder, self.body, self.parts, read & self._same)
        types = self.body.types
        for node in self.body.nodes:
            if node.output in self._sunk:
                operands = [
                    Operand(same[n] if n in self._same else found[n], types[n].shape,
                            n not in self._same)
                    for n in node.inputs
                ]  # fmt: skip
                found[node.output] = lifted(
                    self.builder, node.op, operands, types[node.output], self.old.length,
                    node.output,
                )  # fmt: skip
        return found
