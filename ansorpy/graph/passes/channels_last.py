"""Store images channels last inside the network; transposes remain at its borders.

A value has a logical axis order (the model's) and a stored one: stored axis ``d`` is logical axis
``perm[d]``.  Convolutions, pools and LRN require channels last.  Elementwise operators,
concatenation, reductions and the like take the order of their first operand.  A Transpose of the
model only renames axes.  Where a reader needs another order, a Transpose is inserted, one per value
and order.
"""

from __future__ import annotations

from dataclasses import replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node
from ansorpy.graph.ops import MatMul, Op, Reshape, Shape, Transpose
from ansorpy.graph.ops.base import Operand, Stored, identity_order
from ansorpy.ir.extents import least

__all__ = ["channels_last"]


def channels_last(graph: Graph) -> Graph:
    """*graph* with every image stored channels last; inputs and outputs keep the model's order."""
    return _Layout(graph).run()


class _Layout:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.readers = graph.consumers()
        self.builder = GraphBuilder.like(graph)
        self.stored: dict[str, tuple[str, Shape]] = {}
        self.versions: dict[tuple[str, Shape], str] = {}
        self.flattened: dict[str, tuple[Shape, Shape]] = {}
        for name in (*graph.inputs, *graph.constants):
            self._store(name, name, identity_order(len(graph.types[name].shape)))

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self._convert(node)
        return self.builder.finish(
            replace(o, value=self._in_model_order(o.value)) for o in self.graph.outputs
        )

    def _in_model_order(self, value: str) -> str:
        return self._get(value, identity_order(len(self.graph.types[value].shape)))

    def _convert(self, node: Node) -> None:
        """Emit *node* on operands in the orders that its operator requires."""
        if self._is_flattened(node):
            self._flatten(node)
            return
        operands = [
            Stored(self.graph.types[value].shape, self.stored[value][1]) for value in node.inputs
        ]
        if node.op.enlarges and self._grows_into_outputs(node):
            operands = [Stored(o.shape, identity_order(len(o.shape))) for o in operands]
        plan = node.op.arrange(operands, self.graph.types[node.output].shape)
        columns = zip(node.inputs, plan.operands, strict=True)
        names = [self._placed(value, operand) for value, operand in columns]
        if not self.flattened.keys().isdisjoint(node.inputs[:1]):
            names[1] = self._turned_rows(node, names[1])
        if plan.op is None:
            self._store(node.output, names[0], plan.order)
        else:
            self._emit(plan.op, names, node.output, plan.order)

    def _is_flattened(self, node: Node) -> bool:
        """True for a flatten of stored images that feeds only constant weights."""
        if not isinstance(node.op, Reshape):
            return False
        shape, after = self.graph.types[node.inputs[0]].shape, node.op.shape
        is_flatten = len(after) == 2 and len(shape) > 2 and after[0] == shape[0]
        keeps_batch = is_flatten and self.stored[node.inputs[0]][1][0] == 0
        return keeps_batch and self._feeds_weights_only(node.output)

    def _flatten(self, node: Node) -> None:
        """Keep the stored order after a flatten; the rows of the weights are reordered later."""
        (x,) = node.inputs
        name, order = self.stored[x]
        self.flattened[node.output] = (
            self.graph.types[x].shape[1:], tuple(a - 1 for a in order[1:])
        )  # fmt: skip
        self._emit(node.op, [name], node.output, (0, 1))

    def _turned_rows(self, node: Node, weight: str) -> str:
        """The constant *weight* of a product of flattened images, with its rows in their order."""
        shape, order = self.flattened[node.inputs[0]]
        rows, columns = self.graph.types[node.inputs[1]].shape
        moves = (
            Reshape((*shape, columns)), Transpose((*order, len(order))), Reshape((rows, columns))
        )  # fmt: skip
        return self._moved(weight, moves)

    def _feeds_weights_only(self, value: str) -> bool:
        return all(value != o.value for o in self.graph.outputs) and all(
            isinstance(reader.op, MatMul)
            and reader.inputs[0] == value
            and reader.inputs[1] in self.graph.constants
            and self._rank(reader.inputs[1]) == 2
            for reader in self.readers[value]
        )

    def _grows_into_outputs(self, node: Node) -> bool:
        """True when *node* and its readers only enlarge a value into network outputs."""
        if least(self.graph.types[node.output].size - self.graph.types[node.inputs[0]].size) < 0:
            return False
        readers = self.readers[node.output]
        if not readers:
            return any(node.output == o.value for o in self.graph.outputs)
        return all(reader.op.enlarges and self._grows_into_outputs(reader) for reader in readers)

    def _placed(self, value: str, operand: Operand) -> str:
        return self._moved(self._expanded(value, operand.order), operand.moves)

    def _moved(self, name: str, moves: tuple[Op, ...]) -> str:
        for move in moves:
            name = self.builder.emit(move, [name], f"{name}.{move.label}")
        return name

    def _expanded(self, value: str, perm: Shape) -> str:
        """*value* in the order *perm*, with unit axes added in front if *perm* has more axes."""
        own, rank = self._rank(value), len(perm)
        if own == rank:
            return self._get(value, perm)
        name = self._get(value, identity_order(own))
        if perm == identity_order(rank):
            return name
        shape = (1,) * (rank - own) + self.graph.types[value].shape
        name = self.builder.emit(Reshape(shape), [name], f"{value}.expanded")
        return self.builder.emit(Transpose(perm), [name], f"{value}.ordered")

    def _get(self, value: str, perm: Shape) -> str:
        """The name of the graph value that holds *value* stored in the order *perm*."""
        known = self.versions.get((value, perm))
        if known is None:
            name, stored = self.stored[value]
            turn = Transpose(tuple(stored.index(a) for a in perm))
            known = self.builder.emit(turn, [name], f"{value}.ordered")
            self.versions[value, perm] = known
        return known

    def _emit(self, op: Op, inputs: list[str], value: str, perm: Shape) -> None:
        self.builder.add_node(Node(op, tuple(inputs), value))
        self._store(value, value, perm)

    def _store(self, value: str, name: str, perm: Shape) -> None:
        self.stored[value] = (name, perm)
        self.versions[value, perm] = name

    def _rank(self, value: str) -> int:
        return len(self.graph.types[value].shape)
