"""Fold multiplications and additions by constants into convolutions and matrix products.

    conv(x, w) * s + t            -->   conv(x, w * s) + t
    (x * a + b) * c + d           -->   x * (a * c) + (b * c + d)

A value read more than once stays as it is.  Products of constants are computed in float64.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.graph.ir import Array, Graph, GraphBuilder, Node
from ansorpy.graph.op import Conv, Elementwise, Fn, MatMul, Shape

__all__ = ["fold_scale"]


def fold_scale(graph: Graph) -> Graph:
    """*graph* with chains of constant scales and shifts folded; same results up to rounding."""
    return _Folder(graph).run()


class _Folder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.producers: dict[str, Node] = {}
        readers = graph.consumers()
        results = [output.value for output in graph.outputs]
        self.uses = {name: len(readers[name]) + results.count(name) for name in graph.types}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            folded = self._folded(node)
            self.producers[node.output] = folded
            self.builder.add_node(folded)
        return self.builder.finish(self.graph.outputs)

    def _folded(self, node: Node) -> Node:
        match node.op:
            case Elementwise(Fn.ADD | Fn.MUL as fn) if len(node.inputs) == 2:
                split = self._split_constant(node.inputs)
                if split is not None:
                    x, c = split
                    return (self._scaled if fn is Fn.MUL else self._shifted)(x, c, node.output)
            case Elementwise(Fn.SUB) if self._is_float_constant(node.inputs[1]):
                c = np.negative(self.builder.constants[node.inputs[1]])
                return self._shifted(node.inputs[0], c, node.output)
        return node

    def _split_constant(self, inputs: tuple[str, ...]) -> tuple[str, Array] | None:
        """(computed operand, constant operand) of a commutative operation on floats."""
        for x, c in (inputs, inputs[::-1]):
            if x not in self.builder.constants and self._is_float_constant(c):
                return x, self.builder.constants[c]
        return None

    def _is_float_constant(self, name: str) -> bool:
        return name in self.builder.constants and self.builder.types[name].dtype.is_float

    def _scaled(self, x: str, c: Array, name: str) -> Node:
        """``x * c`` as the value *name*, folded into the producer of *x* if that is affine."""
        before = self._private_producer(x)
        if before is not None:
            match before.op:
                case Elementwise(Fn.ADD | Fn.MUL as fn):
                    split = self._split_constant(before.inputs)
                    if split is not None and (merged := _product(split[1], c)) is not None:
                        if fn is Fn.MUL:
                            return self._scaled(split[0], merged, name)
                        return self._shifted(self._scaled_first(split[0], c, name), merged, name)
                case Conv() | MatMul():
                    weight = self._scaled_weight(before, c)
                    if weight is not None:
                        return Node(before.op, (before.inputs[0], weight), name)
        return Node(Elementwise(Fn.MUL), (x, self._constant(c, name)), name)

    def _scaled_first(self, x: str, c: Array, name: str) -> str:
        """``x * c`` as a value of its own, from which the value *name* is computed."""
        scaled = self._scaled(x, c, f"{name}.scaled")
        value = self.builder.emit(scaled.op, scaled.inputs, scaled.output)
        self.producers[value] = replace(scaled, output=value)
        return value

    def _shifted(self, x: str, c: Array, name: str) -> Node:
        """``x + c`` as the value *name*, merged with a constant shift of *x*."""
        before = self._private_producer(x)
        if before is not None and before.op == Elementwise(Fn.ADD):
            split = self._split_constant(before.inputs)
            if split is not None and _is_tight(split[1], c):
                merged = np.asarray(split[1], np.float64) + np.asarray(c, np.float64)
                return self._shifted(split[0], merged.astype(c.dtype), name)
        return Node(Elementwise(Fn.ADD), (x, self._constant(c, name)), name)

    def _scaled_weight(self, node: Node, c: Array) -> str | None:
        """The constant weight scaled by *c*; None if *c* is not one scale per output channel."""
        data, weight = node.inputs
        if weight not in self.builder.constants:
            return None
        array = self.builder.constants[weight]
        rank = len(self.builder.types[node.output].shape)
        axis = rank - 1 if isinstance(node.op, MatMul) else 1
        channels = array.shape[-1] if isinstance(node.op, MatMul) else array.shape[0]
        scale = _along(c, axis, rank, channels)
        if scale is None:
            return None
        if not isinstance(node.op, MatMul):
            scale = scale.reshape(-1, *(1,) * (array.ndim - 1))
        return self.builder.add_constant(f"{weight}.scaled", np.asarray(array * scale))  # type: ignore[operator]

    def _private_producer(self, name: str) -> Node | None:
        return self.producers.get(name) if self.uses.get(name, 1) == 1 else None

    def _constant(self, array: Array, name: str) -> str:
        return self.builder.add_constant(f"{name}.const", array)


def _is_tight(a: Array, b: Array) -> bool:
    """True when combining *a* and *b* needs no more memory than the larger of them."""
    return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= max(a.size, b.size)


def _product(a: Array, b: Array) -> Array | None:
    if not _is_tight(a, b):
        return None
    return (np.asarray(a, np.float64) * np.asarray(b, np.float64)).astype(b.dtype)


def _along(c: Array, axis: int, rank: int, channels: int) -> Array | None:
    """*c* as a vector over *axis* of a tensor of *rank* dimensions, if it varies only there."""
    shape: Shape = (1,) * (rank - c.ndim) + c.shape
    if c.ndim > rank or any(e != 1 for d, e in enumerate(shape) if d != axis):
        return None
    return c.reshape(-1) if shape[axis] in (1, channels) else None
