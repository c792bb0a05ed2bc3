"""Fuse dequantized operands into products, which then multiply their integers::

    product((x - zero) * s, (w - offset) * t)  -->  product(x - zero, w - offset) * (s * t)

The sum of integers is exact, and takes a quarter of the memory and of the arithmetic.  A product
stays in floats where dot products of bytes cannot compute it: if its weights are not constant or
need more than 8 bits without their zero point, if scales vary along the summed axes, if there are
fewer channels than a word has bytes (depthwise convolutions), if the data are padded by a zero
point computed at run time, or if the sum may exceed 32 bits.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.integers import as_bytes, convolved, multiplied
from ansorpy.graph.ir import Graph, GraphBuilder, Node, Quantized
from ansorpy.graph.ops import Conv, Fn, MatMul, Shape
from ansorpy.ir.extents import AnyExtent, most

__all__ = ["fuse_dequantize"]

_BITS = 8
_SUM_BITS = 31
_WORD = 4
"""Number of byte products that one instruction adds up."""


def fuse_dequantize(graph: Graph) -> Graph:
    """*graph* with integer products wherever dot products of bytes can compute them."""
    if not graph.quantized:
        return graph
    return _Multiplier(graph).run()


class _Multiplier:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.builder = GraphBuilder.like(graph)
        self.names: dict[str, str] = {}
        """The names in the new graph of products that are now computed from integers."""

    def run(self) -> Graph:
        for node in self.graph.nodes:
            inputs = tuple(self._named(name) for name in node.inputs)
            found = self._of_integers(node)
            if found is None:
                self.builder.add_node(replace(node, inputs=inputs))
            else:
                self.names[node.output] = found
        outputs = self.graph.outputs
        return self.builder.finish(replace(o, value=self._named(o.value)) for o in outputs)

    def _named(self, value: str) -> str:
        return self.names.get(value, value)

    def _of_integers(self, node: Node) -> str | None:
        """The value of *node* computed from integers; None if it stays in floats."""
        operands = [self._before(name) for name in node.inputs]
        match node.op, operands:
            case Conv() as op, [Quantized() as data, Quantized() as weight]:
                return self._conv(node, op, data, weight)
            case MatMul(), [Quantized() as left, Quantized() as right]:
                return self._product(node, left, right)
        return None

    def _conv(self, node: Node, op: Conv, data: Quantized, weight: Quantized) -> str | None:
        at = EmitsBeside(self.builder, node.output)
        if as_bytes(at, weight) is None:
            return None
        channels, *taps = self._shape(weight.value)
        if taps[0] < _WORD or not _fits(prod(taps)):
            return None
        is_zero_known = data.zero is None or data.zero in self.builder.constants
        if any(op.pads_begin + op.pads_end) and not is_zero_known:
            return None
        of_data = [self._shape(part) for part in (data.zero, data.scale)]
        of_weight = [self._shape(part)[1:] for part in (weight.zero, weight.scale)]
        if any(of_data) or any(prod(extents) != 1 for extents in of_weight):
            return None
        summed = convolved(at, op, data, weight)
        scale = weight.scale
        if self._shape(scale):
            scale = at.reshape(scale, (channels, *(1,) * (len(taps) - 1)))
        return self._scaled(at, node, summed, data.scale, scale)

    def _product(self, node: Node, left: Quantized, right: Quantized) -> str | None:
        at = EmitsBeside(self.builder, node.output)
        if as_bytes(at, right) is None:
            return None
        shapes = self._shape(left.value), self._shape(right.value)
        if min(map(len, shapes)) < 2 or not _fits(shapes[0][-1]):
            return None
        along = [self._shape(part)[-1:] for part in (left.zero, left.scale)]
        along += [self._shape(part)[-2:-1] for part in (right.zero, right.scale)]
        if any(prod(extents) != 1 for extents in along):
            return None
        summed = multiplied(at, left, right)
        return self._scaled(at, node, summed, left.scale, right.scale)

    def _before(self, value: str) -> Quantized | None:
        """The bytes that *value* was dequantized from, by their names in the new graph, or None."""
        found = self.graph.quantized.get(value)
        if found is None:
            return None
        dtype = self.graph.types[found.value].dtype
        if not dtype.is_int or dtype.bits != _BITS:
            return None
        zero = None if found.zero is None else self._named(found.zero)
        return Quantized(self._named(found.value), zero, self._named(found.scale))

    def _shape(self, value: str | None) -> Shape:
        return () if value is None else self.builder.types[value].shape

    def _scaled(self, at: EmitsBeside, node: Node, summed: str, first: str, second: str) -> str:
        """*summed* times both scales, in the element type of the float product."""
        dtype = self.graph.types[node.inputs[0]].dtype
        wide = dtype.of_sums
        scale = at.apply(Fn.MUL, at.cast(first, wide), at.cast(second, wide))
        return at.cast(at.apply(Fn.MUL, at.cast(summed, wide), scale), dtype)


def _fits(terms: AnyExtent) -> bool:
    """Whether a sum of *terms* products of differences of bytes fits in 32 bits."""
    return most(terms) * ((1 << _BITS) - 1) ** 2 < 1 << _SUM_BITS
