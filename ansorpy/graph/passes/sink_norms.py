"""Move norms behind the transposes that move whole rows.

    transpose(reshape(layer_norm(x) * s + t))   -->   layer_norm(transpose(reshape(x))) * s + t

A norm can read rows from anywhere, so the transpose (for example, into windows of a vision
transformer) becomes an index map in the norm's kernel; after the norm it would be a copy.  No other
node may read an intermediate value, and scale and offset must be the same for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Elementwise, LayerNorm, Op, Reshape, Shape, Transpose
from ansorpy.graph.uses import Uses

__all__ = ["sink_norms"]


@dataclass(frozen=True)
class _Chain:
    """A norm, the arithmetic after it, and the movements after that, ending in a transpose."""

    norm: Node
    arithmetic: Sequence[Node]
    moves: Sequence[Node]


def sink_norms(graph: Graph) -> Graph:
    """*graph* (channels last) with these movements before the norms."""
    finder = _Finder(graph)
    chains = {c.moves[-1].output: c for c in map(finder.chain, graph.nodes) if c is not None}
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if node.output in chains:
            _emit(graph, builder, chains[node.output])
        else:
            builder.add_node(node)
    return builder.finish(graph.outputs)


def _emit(graph: Graph, builder: GraphBuilder, chain: _Chain) -> None:
    value = chain.norm.inputs[0]
    for move in chain.moves:
        value = builder.emit(move.op, (value,), f"{move.output}.rows")
    assert isinstance(chain.norm.op, LayerNorm)
    axis = len(builder.types[value].shape) - 1
    op: Op = replace(chain.norm.op, axes=(axis,))
    inputs = [value]
    for step in chain.arithmetic:
        value = builder.emit(op, inputs, f"{chain.norm.output}.turned")
        op = step.op
        inputs = [value if i not in graph.constants else _row(builder, i) for i in step.inputs]
    builder.add_node(Node(op, tuple(inputs), chain.moves[-1].output))


def _row(builder: GraphBuilder, constant: str) -> str:
    """*constant*, which is the same for all rows, with at most one axis."""
    shape = builder.types[constant].shape
    return builder.emit(Reshape(shape[-1:]), (constant,), f"{constant}.row")


class _Finder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Uses(graph)

    def chain(self, node: Node) -> _Chain | None:
        """The chain that ends in the transpose *node*; None if there is none."""
        if not isinstance(node.op, Transpose) or not self._moves_rows(node):
            return None
        moves, before = [node], self.uses.private(node.inputs[0])
        while before is not None and self._moves_rows(before):
            moves.insert(0, before)
            before = self.uses.private(before.inputs[0])
        arithmetic: list[Node] = []
        while before is not None and isinstance(before.op, Elementwise):
            value = self._scaled(before)
            if value is None:
                return None
            arithmetic.insert(0, before)
            before = self.uses.private(value)
        if before is None or not isinstance(before.op, LayerNorm):
            return None
        last = len(self._shape(before.output)) - 1
        return _Chain(before, arithmetic, moves) if before.op.axes == (last,) else None

    def _moves_rows(self, node: Node) -> bool:
        """True for a movement that leaves the last axis as it is."""
        shape = self._shape(node.output)
        if isinstance(node.op, Reshape):
            return shape[-1:] == self._shape(node.inputs[0])[-1:]
        return isinstance(node.op, Transpose) and node.op.perm[-1] == len(shape) - 1

    def _scaled(self, node: Node) -> str | None:
        """The computed operand of *node*, if its other operands are the same for all rows."""
        others = [i for i in node.inputs if i not in self.graph.constants]
        if len(others) != 1 or self._shape(others[0]) != self._shape(node.output):
            return None
        return others[0] if all(map(self._is_row, node.inputs)) else None

    def _is_row(self, value: str) -> bool:
        """True for computed values, and for constants that are the same for all rows."""
        return value not in self.graph.constants or all(e == 1 for e in self._shape(value)[:-1])

    def _shape(self, value: str) -> Shape:
        return self.graph.types[value].shape
