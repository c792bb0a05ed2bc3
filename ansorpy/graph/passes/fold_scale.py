"""Fold multiplications and additions by constants into convolutions and matrix products.

    conv(x, w) * s + t            -->   conv(x, w * s) + t
    (x * a + b) * c + d           -->   x * (a * c) + (b * c + d)

A value read more than once stays as it is.  Expressions also stay if the new order would be less
accurate: ``(x + b) * c`` if nothing before it rounds, as ``x`` may be close to ``-b``, and
``(x + a) + c`` if the shifts cancel, as that rounds ``x``.  So do those that would overflow or
underflow: combined constants that are out of range, and in float16 either term of
``x * c + b * c``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ansorpy.graph.ir import Array, Graph, GraphBuilder, Node
from ansorpy.graph.ops import Conv, Elementwise, Fn, MatMul, Op, Shape
from ansorpy.ir.dtypes import DType, as_dtype

__all__ = ["fold_scale"]

_MUL = Elementwise(Fn.MUL)

_SHARE = 1 / 8
"""Shifts are merged if their sum is at least this share of the larger shift, so that at most three
bits are lost."""

_SHARE_OF_PRODUCTS = 8
"""The same limit for shifts of products, in units in the last place of the larger shift, because
products are rounded themselves.  Shifts that cancel further than that are meant to round."""

_NOTHING = 2.0**-100
"""Constants below this count as 0; the weights of unused channels are that small."""


def fold_scale(graph: Graph) -> Graph:
    """*graph* with chains of constant scales and shifts folded; same results up to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _Folder(graph).run()


class _Folder:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.producers: dict[str, Node] = {}
        self.weights: dict[tuple[object, ...], str] = {}
        """Scaled weights, by the weight and the scale."""
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
        """``x * c`` as the value *name*, folded into the product that computes *x*.

        If there is a shift between them, it is scaled too.
        """
        product = self._scaled_product(x, c, name)
        if product is not None:
            return product
        split = None if as_dtype(c.dtype) is DType.FLOAT16 else self._shift(x)
        if split is not None and (shift := _product(split[1], c)) is not None:
            product = self._scaled_product(split[0], c, f"{name}.scaled")
            if product is not None:
                return self._shifted(self._emitted(product), shift, name)
        return Node(_MUL, (x, self._constant(c, name)), name)

    def _scaled_product(self, x: str, c: Array, name: str) -> Node | None:
        """``x * c`` with *c* folded into the constant factors of *x*; None if it has none."""
        before = self._private_producer(x)
        match before:
            case Node(op, inputs) if op == _MUL:
                split = self._split_constant(inputs)
                if split is not None and (merged := _product(split[1], c)) is not None:
                    return self._scaled(split[0], merged, name)
            case Node(Conv() | MatMul() as op, (data, _)):
                weight = self._scaled_weight(before, c)
                if weight is not None:
                    return Node(op, (data, weight), name)
        return None

    def _emitted(self, node: Node) -> str:
        """The value of *node*, which is not a node of the original graph."""
        value = self.builder.emit(node.op, node.inputs, node.output)
        self.producers[value] = replace(node, output=value)
        return value

    def _shifted(self, x: str, c: Array, name: str) -> Node:
        """``x + c`` as the value *name*, merged with a constant shift of *x*."""
        split = self._shift(x)
        if split is not None and (merged := self._merged(*split, c)) is not None:
            return self._shifted(split[0], merged, name)
        return Node(Elementwise(Fn.ADD), (x, self._constant(c, name)), name)

    def _merged(self, x: str, a: Array, c: Array) -> Array | None:
        """The sum of two shifts of *x*; None if the larger one rounds away much of it."""
        if not _is_tight(a, c):
            return None
        is_product = isinstance(self._op_of(x), Conv | MatMul) or self._op_of(x) == _MUL
        share = _SHARE_OF_PRODUCTS * as_dtype(c.dtype).epsilon if is_product else _SHARE
        first, second = np.asarray(a, np.float64), np.asarray(c, np.float64)
        least = share * np.maximum(np.abs(first), np.abs(second))
        total = np.asarray(first + second)
        merged = total.astype(c.dtype)
        has_room = np.array_equal(np.isinf(merged), np.isinf(total))
        return merged if has_room and np.all(np.abs(total) >= least) else None

    def _op_of(self, value: str) -> Op | None:
        node = self.producers.get(value)
        return None if node is None else node.op

    def _shift(self, x: str) -> tuple[str, Array] | None:
        """(operand, shift) of the addition that computes *x*, if nothing else reads *x*."""
        before = self._private_producer(x)
        if before is None or before.op != Elementwise(Fn.ADD):
            return None
        return self._split_constant(before.inputs)

    def _scaled_weight(self, node: Node, c: Array) -> str | None:
        """The constant weight scaled by *c*; None unless *c* has one scale per output channel."""
        data, weight = node.inputs
        if weight not in self.builder.constants:
            return None
        array = self.builder.constants[weight]
        rank = len(self.builder.types[node.output].shape)
        summed: Shape
        if isinstance(node.op, MatMul):
            axis, channels, summed = rank - 1, array.shape[-1], (array.ndim - 2,)
        else:
            axis, channels, summed = 1, array.shape[0], tuple(range(1, array.ndim))
        scale = _along(c, axis, rank, channels)
        if scale is None:
            return None
        if not isinstance(node.op, MatMul):
            scale = scale.reshape(-1, *(1,) * len(summed))
        if not _has_room(array, scale, summed):
            return None
        key = (weight, scale.shape, scale.tobytes())
        if key not in self.weights:
            scaled = np.multiply(array, scale)
            self.weights[key] = self.builder.add_constant(f"{weight}.scaled", scaled)
        return self.weights[key]

    def _private_producer(self, name: str) -> Node | None:
        return self.producers.get(name) if self.uses.get(name, 1) == 1 else None

    def _constant(self, array: Array, name: str) -> str:
        return self.builder.share_constant(f"{name}.const", array)


def _is_tight(a: Array, b: Array) -> bool:
    """True when combining *a* and *b* needs no more memory than the larger of them."""
    return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= max(a.size, b.size)


def _product(a: Array, b: Array) -> Array | None:
    return np.asarray(np.multiply(a, b)) if _is_tight(a, b) and _has_room(a, b) else None


def _has_room(a: Array, b: Array, summed: Shape = ()) -> bool:
    """True when no product of *a* and *b* overflows, or underflows where it matters.

    Args:
        summed: Axes over which the scaled terms are summed, so that only the largest product along
            these axes matters.  *b* has one element there.
    """
    least, most = as_dtype(a.dtype).normal
    tops = [_largest(np.asarray(x), summed) for x in (a, b)]
    largest = tops[0] * tops[1]
    is_normal = (largest >= least) & (largest <= most)
    return bool(np.all(is_normal | (np.minimum(*tops) < _NOTHING)))


def _largest(x: Array, summed: Shape) -> npt.NDArray[np.float64]:
    """The largest magnitudes along the axes *summed*; an array of all would take longer."""
    most, least = x.max(summed, keepdims=True), x.min(summed, keepdims=True)
    return np.asarray(np.maximum(np.abs(most), np.abs(least)), np.float64)


def _along(c: Array, axis: int, rank: int, channels: int) -> Array | None:
    """*c* as a vector over *axis* of a tensor of *rank* dimensions, if it varies only there."""
    shape: Shape = (1,) * (rank - c.ndim) + c.shape
    if c.ndim > rank or any(e != 1 for d, e in enumerate(shape) if d != axis):
        return None
    return c.reshape(-1) if shape[axis] in (1, channels) else None
