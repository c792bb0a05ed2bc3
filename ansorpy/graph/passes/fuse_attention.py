"""Recognise attention.

    softmax(q k * scale + masks) v, transposed   -->   attention(q, k, v, masks)

The scale and the masks are optional; masks may be known only at run time.  No other node may read
an intermediate value.  If two attentions share a product, the earlier one is fused.

In one kernel, the scores never leave the caches, but the products are tiled only within a block of
rows.  Which matters more depends on the sizes, so this is a choice, unless there is a single row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.graph.choices import Choices
from ansorpy.graph.factor import factor_of
from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import Attention, Elementwise, Fn, MatMul, Softmax, Transpose
from ansorpy.graph.uses import Uses

__all__ = ["WAYS", "fuse_attention"]

WAYS = {"one kernel": True, "three kernels": False}
"""The options of the choice, and whether the attention then becomes one node."""


@dataclass(frozen=True)
class _Found:
    """An attention found, which replaces the last of *nodes*."""

    op: Attention
    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]


def fuse_attention(graph: Graph, choices: Choices) -> Graph:
    """*graph* with each attention as one node, unless *choices* keep it as several."""
    attentions = _apart(filter(None, map(_Finder(graph).attention_of, graph.nodes)))
    found = {f.nodes[-1].output: f for f in attentions if _is_joined(graph, f, choices)}
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if node.output in found:
            attention = found[node.output]
            builder.add_node(Node(attention.op, attention.inputs, node.output))
        else:
            builder.add_node(node)
    return builder.finish(graph.outputs)


def _apart(attentions: Iterable[_Found]) -> list[_Found]:
    """*attentions* without those that share a node with an earlier attention."""
    taken: set[str] = set()
    apart = []
    for found in attentions:
        values = {node.output for node in found.nodes}
        if taken.isdisjoint(values):
            taken |= values
            apart.append(found)
    return apart


def _is_joined(graph: Graph, found: _Found, choices: Choices) -> bool:
    """Whether *choices* fuse this attention; attentions of equal operand shapes share a choice."""
    shapes = [graph.types[value].shape for value in found.inputs]
    if shapes[0][-2] == 1:
        return True
    of = " ".join("x".join(map(str, shape)) for shape in shapes)
    return choices.way(f"attention of {of}", WAYS)


class _Finder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.uses = Uses(graph)

    def attention_of(self, node: Node) -> _Found | None:
        """The attention that contains the softmax *node*."""
        rank = len(self.graph.types[node.output].shape)
        if not isinstance(node.op, Softmax) or node.op.axes != (rank - 1,):
            return None
        mixed = self.uses.only_reader(node.output)
        if mixed is None or not isinstance(mixed.op, MatMul) or mixed.inputs[0] != node.output:
            return None
        nodes, value, scale = [node], node.inputs[0], 1.0
        masks: tuple[str, ...] = ()
        before = self.uses.private(value)
        while before is not None and (split := self._split(before)) is not None:
            value, masks = split[0], (split[1], *masks)
            nodes.insert(0, before)
            before = self.uses.private(value)
        if before is not None and (factor := factor_of(self.graph, before)) is not None:
            value, scale = factor
            nodes.insert(0, before)
        scores = self.uses.private(value)
        if scores is None or not isinstance(scores.op, MatMul) or scale <= 0:
            return None
        turn = self.uses.only_reader(mixed.output)
        perm = tuple(range(len(self.graph.types[mixed.output].shape)))
        behind = [mixed]
        if turn is not None and isinstance(turn.op, Transpose) and turn.op.perm[-1] == perm[-1]:
            perm = turn.op.perm
            behind.append(turn)
        inputs = (*scores.inputs, mixed.inputs[1], *masks)
        op = Attention(scale, perm, node.op.guarded)
        return _Found(op, inputs, (scores, *nodes, *behind))

    def _split(self, add: Node) -> tuple[str, str] | None:
        """(operand computed from a product, other operand); the sum has the first one's shape."""
        shape = self.graph.types[add.output].shape
        if add.op != Elementwise(Fn.ADD):
            return None
        for value, mask in (add.inputs, add.inputs[::-1]):
            before = self.uses.private(value)
            if before is None or self.graph.types[value].shape != shape:
                continue
            is_scaled = factor_of(self.graph, before) is not None
            if isinstance(before.op, MatMul) or is_scaled or self._split(before):
                return value, mask
        return None
