"""Quantization to small integers and back."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, dtype_of, element_type_of
from ansorpy.frontend.onnx.quantized.narrow import narrowed, numbers
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Quantized
from ansorpy.graph.ops import Fn, Reduce, ReduceKind, Repeat, Shape, Spread
from ansorpy.ir.dtypes import DType
from ansorpy.ir.narrow import ElementType, Narrow

__all__ = [
    "OPERATORS",
    "dequantize_linear",
    "dynamic_quantize_linear",
    "moves",
    "quantize_linear",
    "quantized_to_range",
    "rounded",
    "scaled",
]


def dequantize_linear(ctx: NodeContext) -> str:
    """``(x - zero_point) * scale``, with one scale, or one per index or block of an axis."""
    wanted = ctx.attr("output_dtype", 0)
    if ctx.input() in ctx.builder.narrow or ctx.input(1) in ctx.builder.narrow:
        return _of_narrow(ctx, dtype_of(wanted) if wanted else None)
    given = Quantized(ctx.input(), _along(ctx, 2) if moves(ctx, 2) else None, _along(ctx, 1))
    dtype = dtype_of(wanted) if wanted else ctx.type(1).dtype
    value = scaled(ctx, given.value, given.zero, given.scale, dtype)
    ctx.builder.quantized[value] = given
    return value


def scaled(ctx: NodeContext, value: str, zero: str | None, scale: str, wanted: DType) -> str:
    """``(value - zero) * scale`` of type *wanted*.

    It is rounded once: 16-bit floats do not have most of the integers that they are made of.
    """
    wide = ctx.type_of(scale).dtype.of_sums
    value = ctx.cast(value, wide)
    if zero is not None:
        value = ctx.apply(Fn.SUB, value, ctx.cast(zero, wide))
    return ctx.cast(ctx.apply(Fn.MUL, value, ctx.cast(scale, wide)), wanted)


def _of_narrow(ctx: NodeContext, wanted: DType | None) -> str:
    """A dequantized tensor whose elements, or scales, have a narrow type."""
    kind = ctx.builder.narrow.get(ctx.input())
    scale = _along(ctx, 1, numbers(ctx, ctx.input(1)), ahead=False)
    has_zero = not (kind is not None and kind.is_float) and moves(ctx, 2)
    zero = _along(ctx, 2, ctx.input(2), ahead=False) if has_zero else None
    dtype = wanted or ctx.type_of(scale).dtype
    return scaled(ctx, numbers(ctx, ctx.input()), zero, scale, dtype)


def moves(ctx: NodeContext, operand: int) -> bool:
    """Whether the operand is a zero point other than 0."""
    if not ctx.has_input(operand):
        return False
    array = ctx.builder.constants.get(ctx.input(operand))
    return array is None or bool(array.any())


def quantize_linear(ctx: NodeContext) -> str:
    """``round(x / scale) + zero_point``, halves to even, clipped to the range of the integers.

    Narrow floats are rounded themselves.
    """
    wanted = ctx.attr("output_dtype", 0)
    kind: ElementType = element_type_of(wanted) if wanted else DType.UINT8
    if ctx.has_input(2):
        kind = ctx.builder.narrow.get(ctx.input(2), ctx.type(2).dtype)
    zero = _along(ctx, 2) if ctx.has_input(2) else None
    ratio = _over_scale(ctx)
    if isinstance(kind, Narrow) and kind.is_float:
        if kind is Narrow.FLOAT4E2M1 and moves(ctx, 2):
            offset = ctx.cast(numbers(ctx, _along(ctx, 2)), ctx.type_of(ratio).dtype)
            ratio = ctx.apply(Fn.ADD, ratio, offset)
        return narrowed(ctx, ratio, kind, saturate=bool(ctx.attr("saturate", 1)))
    if isinstance(kind, DType) and (not kind.is_int or kind.bits > 16):
        raise Unsupported(f"element type {kind.value}", "quantize to 16 bits or fewer")
    return rounded(ctx, ratio, zero, kind)


def _over_scale(ctx: NodeContext) -> str:
    """The data over the scale, in the type that ``precision`` names, or the wider of both."""
    data, scale = ctx.input(), _along(ctx, 1, numbers(ctx, ctx.input(1)))
    types = [ctx.type_of(value).dtype for value in (data, scale)]
    code = ctx.attr("precision", 0)
    dtype = dtype_of(code) if code else _wider(*types)
    return ctx.apply(Fn.DIV, ctx.cast(data, dtype), ctx.cast(scale, dtype))


def _wider(a: DType, b: DType) -> DType:
    """The float type in which values of both types are divided."""
    floats = [dtype for dtype in (a, b) if dtype.is_float]
    same = set(floats)
    return floats[0] if len(same) == 1 else max([DType.FLOAT32, *floats], key=lambda d: d.bits)


def dynamic_quantize_linear(ctx: NodeContext) -> tuple[str, str, str]:
    """The operand quantized to 8 bits, its scale and its zero point."""
    ctx.require_float()
    return quantized_to_range(ctx, ctx.input())


def quantized_to_range(ctx: NodeContext, value: str) -> tuple[str, str, str]:
    """*value* in 8 bits, with a range that just covers it and zero; its scale and zero point."""
    kind = ctx.type_of(value)
    every = tuple(range(len(kind.shape)))
    zero = ctx.literal(0, kind.dtype)
    low, high = (
        ctx.apply(fn, ctx.emit(Reduce(op, every, True), [value]), zero)
        for fn, op in ((Fn.MIN, ReduceKind.MIN), (Fn.MAX, ReduceKind.MAX))
    )
    spread = ctx.apply(Fn.SUB, high, low)
    is_flat = ctx.apply(Fn.EQUAL, spread, zero)
    step = ctx.apply(Fn.DIV, spread, ctx.literal(255, kind.dtype))
    scale = ctx.apply(Fn.WHERE, is_flat, ctx.literal(1, kind.dtype), step)
    below = ctx.apply(Fn.NEG, ctx.apply(Fn.DIV, low, scale))
    offset = rounded(ctx, below, None, DType.UINT8)
    data = rounded(ctx, ctx.apply(Fn.DIV, value, scale), offset, DType.UINT8)
    return data, ctx.reshape(scale, ()), ctx.reshape(offset, ())


def rounded(ctx: NodeContext, value: str, zero: str | None, kind: ElementType) -> str:
    """*value* rounded, halves to even, plus *zero*, clipped to the range of the integers *kind*."""
    real = ctx.type_of(value).dtype.of_sums  # 16-bit floats lack some integers of 16 bits
    value = ctx.cast(ctx.apply(Fn.ROUND, value), real)
    if zero is not None:
        value = ctx.apply(Fn.ADD, value, ctx.cast(zero, real))
    low, high = kind.limits
    value = ctx.apply(Fn.CLIP, value, params=(float(low), float(high)))
    if isinstance(kind, Narrow):
        return narrowed(ctx, value, kind)
    return ctx.cast(value, kind)


def _along(ctx: NodeContext, index: int, value: str = "", *, ahead: bool = True) -> str:
    """Operand *index* (or *value* made of it), shaped to broadcast: one number, or one per index
    or block of ``axis``.  Those of blocks are repeated *ahead* of calls if they are constant."""
    own, full, block = ctx.shape(index), ctx.shape(), ctx.attr("block_size", 0)
    value = value or ctx.input(index)
    if not own or own == (1,):
        return ctx.reshape(value, ())
    axis = ctx.axis(ctx.attr("axis", 1), len(full))
    if block:
        blocks = (*full[:axis], -(-full[axis] // block), *full[axis + 1 :])
        if own != blocks:
            raise Unsupported(f"scales of shape {own}", f"give those of shape {blocks}")
        times = tuple(block if d == axis else 1 for d in range(len(full)))
        if not ahead:
            return ctx.emit(Spread(times, full), [value])
        return ctx.slice(ctx.emit(Repeat(times), [value]), {axis: Cut(0, full[axis])})
    if own != (full[axis],):
        raise Unsupported(f"scales of shape {own}", f"give {full[axis]} or one")
    shape: Shape = tuple(own[0] if d == axis else 1 for d in range(len(full)))
    return ctx.reshape(value, shape)


OPERATORS: dict[str, Translate] = {
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "QuantizeLinear": quantize_linear,
}
