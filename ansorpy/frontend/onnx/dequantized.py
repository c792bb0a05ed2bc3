"""Products of dequantized operands, computed from the integers before::

    product((x - zero) * s, (w - offset) * t)  -->  product(x - zero, w - offset) * (s * t)

The sum of integers is exact, and takes a quarter of the memory and of the arithmetic.  A product
keeps its floats where dot products of bytes cannot compute it: on a target without them, with
weights that are not constant or need more than 8 bits without their zero point, with scales that
vary along what is summed, with fewer channels than a word has bytes (depthwise convolutions), if
the data are padded by a zero point computed at run time, or if the sum may exceed 32 bits.
"""

from __future__ import annotations

from math import prod

from ansorpy.frontend.onnx.context import NodeContext, Quantized
from ansorpy.frontend.onnx.integers import Integers, as_bytes, convolved, multiplied
from ansorpy.graph.ops import Conv, Fn, Shape

__all__ = ["integer_conv", "integer_product"]

_BITS = 8
_SUM_BITS = 31
_WORD = 4
"""Bytes of which an instruction adds up the products."""


def integer_conv(ctx: NodeContext, op: Conv, x: str, w: str) -> str | None:
    """The convolution *op* of *x* and *w* from integers; None where floats serve better."""
    data, weight = _before(ctx, x), _before(ctx, w)
    if data is None or weight is None or as_bytes(ctx, _integers(weight)) is None:
        return None
    channels, *taps = _shape(ctx, w)
    if taps[0] < _WORD or not _fits(prod(taps)):
        return None
    is_zero_known = data.zero is None or data.zero in ctx.builder.constants
    if any(op.pads_begin + op.pads_end) and not is_zero_known:
        return None
    of_data = [_shape(ctx, part) for part in (data.zero, data.scale)]
    of_weight = [_shape(ctx, part)[1:] for part in (weight.zero, weight.scale)]
    if any(of_data) or any(prod(extents) != 1 for extents in of_weight):
        return None
    summed = convolved(ctx, op, _integers(data), _integers(weight))
    scale = weight.scale
    if _shape(ctx, scale):
        scale = ctx.reshape(scale, (channels, *(1,) * (len(taps) - 1)))
    return _scaled(ctx, summed, data.scale, scale)


def integer_product(ctx: NodeContext, a: str, b: str) -> str | None:
    """The product of the matrices *a* and *b* from integers; None where floats serve better."""
    left, right = _before(ctx, a), _before(ctx, b)
    if left is None or right is None or as_bytes(ctx, _integers(right)) is None:
        return None
    if min(len(_shape(ctx, a)), len(_shape(ctx, b))) < 2 or not _fits(_shape(ctx, a)[-1]):
        return None
    along = [_shape(ctx, part)[-1:] for part in (left.zero, left.scale)]
    along += [_shape(ctx, part)[-2:-1] for part in (right.zero, right.scale)]
    if any(prod(extents) != 1 for extents in along):
        return None
    summed = multiplied(ctx, _integers(left), _integers(right))
    return _scaled(ctx, summed, left.scale, right.scale)


def _before(ctx: NodeContext, value: str) -> Quantized | None:
    """The bytes that *value* was dequantized from, if products of bytes are wanted."""
    found = ctx.quantized.get(value) if ctx.byte_products else None
    if found is None:
        return None
    dtype = ctx.builder.types[found.value].dtype
    return found if dtype.is_int and dtype.bits == _BITS else None


def _integers(quantized: Quantized) -> Integers:
    return Integers(quantized.value, quantized.zero)


def _shape(ctx: NodeContext, value: str | None) -> Shape:
    return () if value is None else ctx.builder.types[value].shape


def _fits(terms: int) -> bool:
    """Whether a sum of so many products of differences of bytes has 32 bits."""
    return terms * ((1 << _BITS) - 1) ** 2 < 1 << _SUM_BITS


def _scaled(ctx: NodeContext, summed: str, first: str, second: str) -> str:
    """*summed* times both scales, as the node's element type."""
    wide = ctx.type().dtype.of_sums
    scale = ctx.apply(Fn.MUL, ctx.cast(first, wide), ctx.cast(second, wide))
    return ctx.cast(ctx.apply(Fn.MUL, ctx.cast(summed, wide), scale), ctx.type().dtype)
