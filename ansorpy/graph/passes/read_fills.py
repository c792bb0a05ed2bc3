"""Read one number instead of a tensor that repeats it.

x + expand(c)                          -->   x + c, where x has the shape of the sum
expand(c) + d                          -->   expand(c + d), where d is a number too
gather(expand(c), i)                   -->   expand(c)

Exporters write masks and states as tensors of one number, in shapes that depend on sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ansorpy.graph.constants import constant_values
from ansorpy.graph.ir import Graph, GraphBuilder, Node, Output
from ansorpy.graph.ops import (
    Cast,
    Elementwise,
    Expand,
    Gather,
    GatherElements,
    GatherND,
    Movement,
    Op,
    broadcast,
)

__all__ = ["read_fills"]

_MOVING = Movement | Gather | GatherElements | GatherND
"""Operators whose results are elements of their first operand."""


def read_fills(graph: Graph) -> Graph:
    """*graph* whose arithmetic reads numbers in place of tensors that repeat them."""
    return _Pass(graph).run()


class _Pass:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.numbers: dict[str, str] = {}
        """The constant without axes that each value repeats."""

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self._convert(node)
        return self.builder.finish(self.graph.outputs)

    def _convert(self, node: Node) -> None:
        arithmetic = isinstance(node.op, Elementwise | Cast)
        numbers = [self._number(value) for value in node.inputs]
        if arithmetic and numbers and all(numbers):
            self._fill(node, self._computed(node.op, [n for n in numbers if n]))
            return
        if isinstance(node.op, _MOVING) and numbers[0] and self._is_large(node.output):
            self._fill(node, numbers[0])
            return
        self.builder.add_node(replace(node, inputs=self._read(node)) if arithmetic else node)

    def _read(self, node: Node) -> tuple[str, ...]:
        """The operands of arithmetic; those that its shape does not need are numbers."""
        types = self.graph.types
        full = types[node.output].shape
        read = list(node.inputs)
        for place, value in enumerate(node.inputs):
            if value not in self.numbers or value in self.graph.constants:
                continue
            others = [types[i].shape for n, i in enumerate(read) if n != place and i in types]
            if others and broadcast(others) == full:
                read[place] = self.numbers[value]
        return tuple(read)

    def _number(self, value: str) -> str | None:
        array = self.graph.constants.get(value)
        if array is None:
            return self.numbers.get(value)
        if array.size != 1:
            return None
        if value not in self.numbers:
            self.numbers[value] = self.builder.add_constant(f"{value}.number", array.reshape(()))
        return self.numbers[value]

    def _is_large(self, value: str) -> bool:
        return self.graph.types[value].size != 1

    def _fill(self, node: Node, number: str) -> None:
        """Compute *node* as *number*, repeated."""
        self.numbers[node.output] = number
        self.builder.add_node(
            Node(Expand(self.graph.types[node.output].shape), (number,), node.output)
        )

    def _computed(self, op: Op, numbers: Sequence[str]) -> str:
        held = {name: self.builder.constants[name] for name in numbers}
        kind = op.infer([self.builder.types[name] for name in numbers])
        types = {**{name: self.builder.types[name] for name in numbers}, "": kind}
        known = Graph((), (Output("", ""),), (Node(op, tuple(numbers), ""),), types, held)
        (array,) = constant_values(known)
        return self.builder.add_constant("number", array)
