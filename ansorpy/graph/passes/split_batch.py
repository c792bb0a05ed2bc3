"""Run a large batch through the first part of a network in pieces.

    y = f(x)   -->   y = f(x[:n]) | f(x[n:2n]) | ...

The values between the layers of `f` then stay in the caches, while those of the whole batch would
go to memory and back; in return, the constants are read once per piece.  Later layers, whose values
are small compared to their constants, are faster on the whole batch, so how far to split is a
choice.  The pieces are views of the inputs and of the results, so nothing is copied.  All pieces
call the same kernels, so the code does not grow.

Source: the depth-first tiling of networks (Alwani et al., 2016, "Fused-layer CNN accelerators"),
here along the batch, where tiles do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np

from ansorpy.graph.choices import Choices
from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Concat, Op, Pattern, Shape, Slice
from ansorpy.graph.ops.base import Rows
from ansorpy.graph.uses import Uses
from ansorpy.ir.extents import most

__all__ = ["WHOLE", "Front", "split_batch"]

WHOLE = "whole"
"""The option that leaves the network as it is."""

SMALLER = (4, 16)
"""Factors by which values must shrink before pieces may be joined: the value passed on there, and
all later ones, are at least this much smaller than the largest value before."""


def split_batch(graph: Graph, choices: Choices) -> Graph:
    """*graph* with its batch in pieces as far as *choices* say.

    It is unchanged if values are small, or if the batch is a dimension.
    """
    batch = _batch(graph)
    if batch < 2 or not choices.cache_bytes:
        return graph
    largest = max((most(graph.types[node.output].bytes) for node in graph.nodes), default=0)
    if largest <= 2 * choices.cache_bytes:
        return graph
    fitting = (n for n in range(2, batch) if batch % n == 0 and largest <= n * choices.cache_bytes)
    front = Front(graph, next(fitting, batch))
    ends = {front.handed_on(end): end for end in front.ends()}
    if not ends:
        return graph
    ways = {WHOLE: (), **{front.text(values): values for values in ends}}
    taken = choices.way(f"batch of {batch}", ways)
    return front.split(ends[taken]) if taken else graph


def _batch(graph: Graph) -> int:
    """The extent of the first axis of all inputs; 0 if they differ, or if it is no number."""
    found = {graph.types[name].shape[:1] for name in graph.inputs}
    extents = found.pop() if len(found) == 1 else ()
    return extents[0] if extents and isinstance(extents[0], int) else 0


class Front:
    """The nodes up to the first one that needs rows of several of the *pieces* at once."""

    def __init__(self, graph: Graph, pieces: int):
        self.graph = graph
        self.uses = Uses(graph)
        self.pieces = pieces
        self.ops: dict[str, Op] = {}
        """The operator that computes one piece of each value that is cut."""
        self.read_last = self._read_last()
        self.last = self._cut()
        """The number of the first node that cannot be cut although one of its operands is."""

    def _cut(self) -> int:
        cut = set(self.graph.inputs)
        for place, node in enumerate(self.graph.nodes):
            if cut.isdisjoint(node.inputs):
                continue
            operands = [
                Rows(self.graph.types[value].shape, value in cut or self.is_repeated(node, value))
                for value in node.inputs
            ]
            op = self._on_piece(node.op, operands, self.graph.types[node.output].shape)
            if op is None:
                return place
            self.ops[node.output] = op
            cut.add(node.output)
        return len(self.graph.nodes)

    def _on_piece(self, op: Op, operands: Sequence[Rows], shape: Shape) -> Op | None:
        """*op* for one piece of its result of *shape*; None if it needs rows of several pieces."""
        extents = [shape[:1], *(o.shape[:1] for o in operands if o.cut)]
        if any(not e or e[0] % self.pieces != 0 for e in extents):
            return None
        return op.on_rows(shape[0] // self.pieces) if op.keeps_rows(operands, shape) else None

    def is_repeated(self, node: Node, value: str) -> bool:
        """True for a constant whose rows are the same for each piece of *node*'s result."""
        shape = self.graph.types[node.output].shape
        if value not in self.graph.constants or node.op.pattern > Pattern.INJECTIVE:
            return False
        array = self.graph.constants[value]
        if array.ndim != len(shape) or array.shape[:1] != shape[:1] or shape[0] % self.pieces:
            return False
        first, *others = np.split(array, self.pieces)
        return all(np.array_equal(first, other) for other in others)

    def ends(self) -> list[int]:
        """Numbers of the nodes before which the pieces may be joined, last first."""
        sizes = [most(self.graph.types[node.output].bytes) for node in self.graph.nodes]
        largest = max(sizes[: self.last], default=0)
        behind = [*accumulate(reversed(sizes), max)][::-1]
        necks = list(self._necks())
        found = set()
        for part in SMALLER:
            limit = largest // part
            small = (n for n, size in necks if size <= limit and behind[n] <= limit)
            found.add(next(small, self.last))
        return sorted(found - {0}, reverse=True)

    def _necks(self) -> Iterator[tuple[int, int]]:
        """(end, bytes) where a single value, of that size, is passed on before node *end*.

        Skips places that would separate arithmetic from a producer that it could be fused with.
        """
        handed_on: dict[str, None] = {}
        for end, node in enumerate(self.graph.nodes[: self.last]):
            if len(handed_on) == 1:
                (value,) = handed_on
                reader = self.uses.only_reader(value)
                if reader is None or reader.op.pattern is not Pattern.ELEMENTWISE:
                    yield end, most(self.graph.types[value].bytes)
            if node.output in self.ops:
                handed_on[node.output] = None
            for value in (node.output, *node.inputs):
                if self.read_last[value] <= end:
                    handed_on.pop(value, None)

    def handed_on(self, end: int) -> tuple[str, ...]:
        """Values computed in pieces that the caller or a node from number *end* on reads."""
        made = (node.output for node in self.graph.nodes[:end])
        return tuple(value for value in made if value in self.ops and self.read_last[value] >= end)

    def _read_last(self) -> dict[str, int]:
        """The number of the last node that reads each value; -1 if no node does.

        For values that the caller reads, it is the number of nodes.
        """
        found = dict.fromkeys(self.graph.types, -1)
        for place, node in enumerate(self.graph.nodes):
            found.update(dict.fromkeys(node.inputs, place))
        caller = len(self.graph.nodes)
        return found | {output.value: caller for output in self.graph.outputs}

    def text(self, handed_on: Sequence[str]) -> str:
        """Description of the option in which the pieces end with the values *handed_on*."""
        shapes = (self.graph.types[value].shape[1:] for value in handed_on)
        to = " ".join("x".join(map(str, shape)) for shape in shapes)
        return f"in {self.pieces} up to {to}"

    def split(self, end: int) -> Graph:
        """The graph with all nodes before number *end* in pieces."""
        return _Splitter(self, end).run()


class _Splitter:
    def __init__(self, front: Front, end: int):
        self.front = front
        self.graph = front.graph
        self.end = end
        self.builder = GraphBuilder.like(self.graph)
        self.repeated: dict[str, str] = {}

    def run(self) -> Graph:
        for node in self.graph.nodes[: self.end]:
            if node.output not in self.front.ops:
                self.builder.add_node(node)
        handed_on = self.front.handed_on(self.end)
        parts: dict[str, list[str]] = {value: [] for value in handed_on}
        for piece in range(self.front.pieces):
            names = self._piece(piece)
            for value, made in parts.items():
                made.append(names[value])
        for value, made in parts.items():
            self.builder.add_node(Node(Concat(0), tuple(made), value))
        for node in self.graph.nodes[self.end :]:
            self.builder.add_node(node)
        return self.builder.finish(self.graph.outputs)

    def _piece(self, piece: int) -> dict[str, str]:
        """Emit all cut nodes for part number *piece*; returns the new name of each value."""
        names = {value: self._part(value, piece) for value in self.graph.inputs}
        for node in self.graph.nodes[: self.end]:
            if node.output not in self.front.ops:
                continue
            inputs = [self._operand(node, value, names) for value in node.inputs]
            op = self.front.ops[node.output]
            names[node.output] = self.builder.emit(op, inputs, f"{node.output}.{piece}")
        return names

    def _operand(self, node: Node, value: str, names: Mapping[str, str]) -> str:
        if value in names:
            return names[value]
        return self._rows(value) if self.front.is_repeated(node, value) else value

    def _part(self, value: str, piece: int) -> str:
        """Part number *piece* of a network input."""
        rows, *rest = self.graph.types[value].shape
        each = rows // self.front.pieces
        none = (0,) * len(rest)
        cut = Slice((piece * each, *none), (each, *rest), (1,) * (1 + len(rest)))
        return self.builder.emit(cut, (value,), f"{value}.{piece}")

    def _rows(self, value: str) -> str:
        """One piece of a constant, which all pieces read, as its pieces are equal."""
        if value not in self.repeated:
            array = self.graph.constants[value]
            part = array[: len(array) // self.front.pieces]
            self.repeated[value] = self.builder.add_constant(f"{value}.piece", part)
        return self.repeated[value]
