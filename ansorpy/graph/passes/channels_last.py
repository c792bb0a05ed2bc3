"""Store images channels last inside the network; transposes remain at its borders.

A value has a logical axis order (the model's) and a stored one: stored axis ``d`` is logical axis
``perm[d]``.  Convolutions, pools and LRN ask for channels last; elementwise operators,
concatenation, reductions and the like take the order of their first operand; a Transpose of the
model only renames axes.  A reader that needs another order gets a Transpose, one per value and
order.
"""

from __future__ import annotations

from dataclasses import replace

from ansorpy.graph.ir import Graph, GraphBuilder, Node, Output
from ansorpy.graph.op import (
    Conv,
    ConvTranspose,
    LayerNorm,
    Lrn,
    MatMul,
    Op,
    Pool,
    Resample,
    Reshape,
    Shape,
    Softmax,
    Transpose,
)
from ansorpy.graph.op.base import pick, runs

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
            self._store(name, name, _identity(len(graph.types[name].shape)))

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self._convert(node)
        return self.builder.finish(
            Output(o.name, self._get(o.value, _identity(len(self.graph.types[o.value].shape))))
            for o in self.graph.outputs
        )

    def _convert(self, node: Node) -> None:
        match node.op:
            case Conv():
                self._convolution(node, node.op)
            case ConvTranspose():
                self._transposed(node, node.op)
            case Pool() | Lrn():
                perm = _last(self._rank(node.inputs[0]))
                op = (
                    replace(node.op, axis=perm.index(node.op.axis))
                    if isinstance(node.op, Lrn)
                    else replace(node.op, channels_last=True)
                )
                self._emit(op, [self._get(node.inputs[0], perm)], node.output, perm)
            case Transpose(perm):
                name, stored = self.stored[node.inputs[0]]
                self._store(node.output, name, tuple(perm.index(a) for a in stored))
            case Reshape():
                self._reshape(node, node.op)
            case MatMul():
                self._matmul(node)
            case Resample():
                self._resample(node, node.op)
            case _:
                self._other(node)

    def _convolution(self, node: Node, op: Conv) -> None:
        """Weight ``[co, ci, *k]`` to ``[*k, ci, co]``; grouped, depthwise as :class:`Conv` says."""
        data, weight = node.inputs
        rank = len(op.strides)
        taps = tuple(range(2, rank + 2))
        name = self._get(weight, _identity(rank + 2))
        co, ci, *kernel = self.graph.types[weight].shape
        if op.groups == 1:
            name = self._get(weight, (*taps, 1, 0))
        else:
            grouped = Reshape((op.groups, co // op.groups, ci, *kernel))
            name = self.builder.emit(grouped, [name], f"{weight}.grouped")
            turned = Transpose((*(t + 1 for t in taps), 0, 2, 1))
            name = self.builder.emit(turned, [name], f"{weight}.last")
            if ci == co // op.groups == 1:
                name = self.builder.emit(Reshape((*kernel, co)), [name], f"{weight}.depthwise")
        perm = _last(rank + 2)
        self._emit(
            replace(op, channels_last=True), [self._get(data, perm), name], node.output, perm
        )

    def _transposed(self, node: Node, op: ConvTranspose) -> None:
        """Weight ``[ci, co, *k]`` to ``[*k, ci, co]``, with groups to ``[*k, groups, ci, co]``."""
        data, weight = node.inputs
        rank = len(op.strides)
        taps = tuple(range(2, rank + 2))
        name = self._get(weight, _identity(rank + 2))
        ci, co, *kernel = self.graph.types[weight].shape
        if op.groups == 1:
            name = self._get(weight, (*taps, 0, 1))
        else:
            grouped = Reshape((op.groups, ci // op.groups, co, *kernel))
            name = self.builder.emit(grouped, [name], f"{weight}.grouped")
            turned = Transpose((*(t + 1 for t in taps), 0, 1, 2))
            name = self.builder.emit(turned, [name], f"{weight}.last")
        perm = _last(rank + 2)
        self._emit(
            replace(op, channels_last=True), [self._get(data, perm), name], node.output, perm
        )

    def _reshape(self, node: Node, op: Reshape) -> None:
        """Reshape in the stored order if the axes that merge are neighbours in both orders.

        A flatten that feeds only constant weights keeps the stored order; the weights follow.
        """
        (x,) = node.inputs
        name, perm = self.stored[x]
        shape = self.graph.types[x].shape
        is_flatten = len(op.shape) == 2 and len(shape) > 2 and op.shape[0] == shape[0]
        if is_flatten and perm[0] == 0 and self._feeds_weights_only(node.output):
            self.flattened[node.output] = (shape[1:], tuple(a - 1 for a in perm[1:]))
            self._emit(op, [name], node.output, (0, 1))
        elif (order := _regrouped(shape, op.shape, perm)) is not None:
            self._emit(Reshape(pick(op.shape, order)), [name], node.output, order)
        else:
            source = self._get(x, _identity(len(shape)))
            self._emit(op, [source], node.output, _identity(len(op.shape)))

    def _feeds_weights_only(self, value: str) -> bool:
        return all(value != o.value for o in self.graph.outputs) and all(
            isinstance(reader.op, MatMul)
            and reader.inputs[0] == value
            and reader.inputs[1] in self.graph.constants
            and self._rank(reader.inputs[1]) == 2
            for reader in self.readers[value]
        )

    def _matmul(self, node: Node) -> None:
        a, b = (self._get(i, _identity(self._rank(i))) for i in node.inputs)
        if node.inputs[0] in self.flattened:
            shape, perm = self.flattened[node.inputs[0]]
            rows, columns = self.graph.types[node.inputs[1]].shape
            b = self.builder.emit(Reshape((*shape, columns)), [b], f"{b}.split")
            b = self.builder.emit(Transpose((*perm, len(perm))), [b], f"{b}.turned")
            b = self.builder.emit(Reshape((rows, columns)), [b], f"{b}.rows")
        self._emit(node.op, [a, b], node.output, _identity(self._rank(node.output)))

    def _resample(self, node: Node, op: Resample) -> None:
        """Resample in the stored order, or in the model's if only enlarged values are output."""
        data, *tables = node.inputs
        name, perm = self.stored[data]
        if self._grows_into_outputs(node):
            perm = _identity(len(perm))
            name = self._get(data, perm)
        self._emit(replace(op, axis=perm.index(op.axis)), [name, *tables], node.output, perm)

    def _grows_into_outputs(self, node: Node) -> bool:
        """True when *node* and its readers only enlarge a value into network outputs."""
        if self.graph.types[node.output].size < self.graph.types[node.inputs[0]].size:
            return False
        readers = self.readers[node.output]
        if not readers:
            return any(node.output == o.value for o in self.graph.outputs)
        return all(
            isinstance(reader.op, Resample) and self._grows_into_outputs(reader)
            for reader in readers
        )

    def _other(self, node: Node) -> None:
        """Take the stored order of the first operand that differs from the model's, if possible.

        A norm that includes the last axis takes it only if one of its axes is innermost.
        """
        rank = max(self._rank(i) for i in node.inputs)
        perm = _identity(rank)
        for name in node.inputs:
            if self._rank(name) == rank and self.stored[name][1] != _identity(rank):
                perm = self.stored[name][1]
                break
        if isinstance(node.op, LayerNorm | Softmax) and rank - 1 in node.op.axes:
            perm = perm if perm[-1] in node.op.axes else _identity(rank)
        op = node.op.reordered(perm)
        if op is not None:
            inputs = [self._expanded(i, rank, perm) for i in node.inputs]
            self._emit(op, inputs, node.output, node.op.output_order(perm))
            return
        inputs = [self._get(i, _identity(self._rank(i))) for i in node.inputs]
        self._emit(node.op, inputs, node.output, _identity(self._rank(node.output)))

    def _expanded(self, value: str, rank: int, perm: Shape) -> str:
        """*value* in the order *perm* of a tensor of *rank*, unit axes added in front if needed."""
        own = self._rank(value)
        if own == rank:
            return self._get(value, perm)
        name = self._get(value, _identity(own))
        if perm == _identity(rank):
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


def _identity(rank: int) -> Shape:
    return tuple(range(rank))


def _last(rank: int) -> Shape:
    return (0, *range(2, rank), 1) if rank > 2 else _identity(rank)


def _regrouped(before: Shape, after: Shape, perm: Shape) -> Shape | None:
    """Stored order of *after*, reshaped from *before* in stored order *perm*; None if impossible.

    A reshape merges runs of axes and splits them anew.  Runs that the stored order keeps together
    and in sequence can be reshaped in place.  Axes of extent one may lie anywhere.
    """
    places: list[tuple[int, Shape]] = []
    for run, made in runs(before, after):
        stored = [perm.index(axis) for axis in run if before[axis] > 1]
        if stored and stored != list(range(stored[0], stored[0] + len(stored))):
            return None
        first = stored or [perm.index(axis) for axis in run] or [len(perm)]
        places.append((first[0], made))
    return tuple(axis for _, made in sorted(places, key=lambda p: p[0]) for axis in made)
