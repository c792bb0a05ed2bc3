"""Placement of values: in their own memory, or as parts of other values.

A reshape has the same bytes as its operand.  A slice is part of its operand.  The operands of a
concatenation are parts of its result, and their producers write there, so nothing is copied.  If
all of them are movements (for example, two swapped halves of rows), one kernel computes the whole
result.

What continues an input of the network (:mod:`ansorpy.graph.aliases`) is a concatenation in memory
of the caller, of which the input is a part, too.

Slices and concatenations need offsets of whole cache lines, so that vectors stay aligned.  An
operand of a concatenation must be computed by a kernel and belong to only one concatenation; a
slice of a constant, whose size depends on the call, is none.
Otherwise, a kernel performs the movement.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass

from ansorpy.graph.ir import Graph, Node
from ansorpy.graph.ops import Concat, Extend, Movement, Pattern, Reshape, Shape, Slice
from ansorpy.graph.uses import Uses
from ansorpy.ir.dag import in_row_major_order
from ansorpy.ir.extents import AnyExtent, least, multiple_of
from ansorpy.ir.strides import ALIGNMENT_BYTES, Strides, dense_strides, reshaped

__all__ = ["Place", "Placement", "place_values"]


@dataclass(frozen=True)
class Place:
    """A value that starts at element ``offset`` of the value ``root``, with ``strides``."""

    root: str
    offset: AnyExtent
    strides: Strides


@dataclass(frozen=True)
class Placement:
    """The place of every value, and which nodes' outputs need no kernel."""

    graph: Graph
    places: Mapping[str, Place]
    views: frozenset[str]

    def root(self, value: str) -> str:
        """The value whose memory contains *value*; *value* itself if it has its own memory."""
        return self.places[value].root

    def is_whole(self, value: str) -> bool:
        """True when *value* occupies all of its root's memory."""
        types = self.graph.types
        return types[value].size == types[self.root(value)].size

    def is_dense(self, value: str) -> bool:
        return self.places[value].strides == dense_strides(self.graph.types[value].shape)

    def strides(self, value: str, shape: Shape) -> Strides | None:
        """Strides with which *value* can be read as *shape*; None if there are none."""
        return reshaped(self.graph.types[value].shape, self.places[value].strides, shape)


def place_values(graph: Graph) -> Placement:
    """Make views of all reshapes, and of as many slices and concatenations as possible."""
    return _Placer(graph).run()


class _Inexpressible(Exception):
    """A view would need strides that do not exist."""


class _Placer:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Uses(graph)
        self.producers, self.readers = self.uses.producers, self.uses.readers
        self.slices: set[str] = set()
        self.holders: dict[str, tuple[Node, int]] = {}
        """By root of an operand: the concatenation it is part of, and the operand's number."""

    def run(self) -> Placement:
        extended = [node for node in self.graph.nodes if isinstance(node.op, Extend)]
        for node in extended:
            roots = map(self._source, node.inputs)
            self.holders |= {value: (node, number) for number, value in enumerate(roots)}
        places = self._places()
        joined = {node.output for node in extended}
        for node in reversed(self.graph.nodes):
            if isinstance(node.op, Concat) and (found := self._held_by(node)) is not None:
                self.holders.update(found)
                moved = self._moved(found, places, (node.output, *node.inputs))
                if moved is not None:
                    places.update(moved)
                    joined.add(node.output)
                else:
                    for value in found:
                        del self.holders[value]
        for node in self.graph.nodes:
            is_cut = isinstance(node.op, Slice) and not self._is_constant(node.inputs[0], places)
            if is_cut and node.output not in self.holders:
                self.slices.add(node.output)
                moved = self._moved((node.output,), places, (node.output,))
                if moved is not None:
                    places.update(moved)
                else:
                    self.slices.discard(node.output)
        views = {n.output for n in self.graph.nodes if isinstance(n.op, Reshape)}
        return Placement(self.graph, places, frozenset(views | joined | self.slices))

    def _is_constant(self, value: str, places: Mapping[str, Place]) -> bool:
        """True for a constant, of which kernels may read only the whole."""
        return places[value].root in self.graph.constants

    def _moved(
        self, values: Iterable[str], places: dict[str, Place], aligned: Iterable[str]
    ) -> Mapping[str, Place] | None:
        """The places that change if *values* become parts: theirs and those of their reshapes.

        None if a place cannot be expressed, or if one of *aligned* would not start at a cache line.
        Other parts of *values* are decided later.
        """
        changed = ChainMap[str, Place]({}, places)
        todo = list(values)
        try:
            while todo:
                at = todo.pop()
                changed[at] = self._found(at, changed)
                todo += [r.output for r in self.readers[at] if isinstance(r.op, Reshape)]
        except _Inexpressible:
            return None
        return changed.maps[0] if all(self._is_aligned(v, changed) for v in aligned) else None

    def _is_aligned(self, value: str, places: Mapping[str, Place]) -> bool:
        size = self.graph.types[value].dtype.bytes
        return multiple_of(places[value].offset * size) % ALIGNMENT_BYTES == 0

    def _held_by(self, node: Node) -> dict[str, tuple[Node, int]] | None:
        """The concatenation *node* and operand number, by operand root; None if one is copied."""
        if all(map(self._is_moved, node.inputs)):
            return None
        found: dict[str, tuple[Node, int]] = {}
        for number, value in enumerate(node.inputs):
            value = self._source(value)
            if value not in self.producers or value in self.holders or value in found:
                return None
            if self.producers[value].op.bodies:  # what regions compute lies densely
                return None
            found[value] = (node, number)
        return found

    def _source(self, value: str) -> str:
        """The value of which *value* is a reshape; *value* itself if it is none."""
        while value in self.producers and isinstance(self.producers[value].op, Reshape):
            (value,) = self.producers[value].inputs
        return value

    def _is_moved(self, value: str) -> bool:
        """True when *value* comes from movements and arithmetic on them, and has one reader."""
        todo = [value]
        while todo:
            node = self.uses.private(todo.pop())
            if node is None or node.op.pattern > Pattern.INJECTIVE:
                return False
            if not isinstance(node.op, Movement) or isinstance(node.op, Reshape):
                operands = [i for i in node.inputs if i not in self.graph.constants]
                if not operands:
                    return False
                todo += operands
        return True

    def _places(self) -> dict[str, Place]:
        """The places of all values under the current choices.

        Raises:
            _Inexpressible: A value would have no strides, or rows that are not contiguous.
        """
        places: dict[str, Place] = {}
        for value in reversed(list(self.graph.types)):
            self._place(value, places)
        return places

    def _place(self, value: str, places: MutableMapping[str, Place]) -> Place:
        if value not in places:
            places[value] = self._found(value, places)
        return places[value]

    def _found(self, value: str, places: MutableMapping[str, Place]) -> Place:
        shape = self.graph.types[value].shape
        if value in self.holders:
            return self._part(value, *self.holders[value], places)
        op = self.producers[value].op if value in self.producers else None
        if isinstance(op, Reshape):
            (x,) = self.producers[value].inputs
            whole = self._place(x, places)
            strides = reshaped(self.graph.types[x].shape, whole.strides, shape)
            return _expressed(whole.root, whole.offset, shape, strides)
        if isinstance(op, Slice) and value in self.slices:
            whole = self._place(self.producers[value].inputs[0], places)
            if any(least(step) < 1 for step in op.steps) or (op.steps and op.steps[-1] != 1):
                raise _Inexpressible
            offset = sum(at * s for at, s in zip(op.starts, whole.strides, strict=True))
            strides = tuple(k * s for k, s in zip(op.steps, whole.strides, strict=True))
            return _expressed(whole.root, whole.offset + offset, shape, strides)
        strides = op.strides(shape) if isinstance(op, Extend) else dense_strides(shape)
        return Place(value, 0, strides)

    def _part(
        self, value: str, node: Node, number: int, places: MutableMapping[str, Place]
    ) -> Place:
        """The place of *value* in a concatenation whose operand *number* is a reshape of it."""
        whole = self._place(node.output, places)
        assert isinstance(node.op, Concat | Extend)
        before = (self.graph.types[x].shape[node.op.axis] for x in node.inputs[:number])
        offset = sum(before) * whole.strides[node.op.axis]
        part = self.graph.types[node.inputs[number]].shape
        shape = self.graph.types[value].shape
        strides = reshaped(part, whole.strides, shape)
        return _expressed(whole.root, whole.offset + offset, shape, strides)


def _expressed(root: str, offset: AnyExtent, shape: Shape, strides: Strides | None) -> Place:
    """The :class:`Place`; raises if rows are not contiguous, which vector loads require, or if
    their order, which definitions rely on, does not follow from the form of the sizes."""
    if strides is None or (strides and strides[-1] != 1) or not in_row_major_order(shape, strides):
        raise _Inexpressible
    return Place(root, offset, strides)
