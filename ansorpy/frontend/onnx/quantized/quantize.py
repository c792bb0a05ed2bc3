"""Quantization to small integers and back."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported, dtype_of
from ansorpy.graph.ir import Quantized
from ansorpy.graph.ops import Fn, Reduce, ReduceOp, Repeat, Shape
from ansorpy.ir.dtypes import DType

__all__ = [
    "OPERATORS",
    "dequantize_linear",
    "dynamic_quantize_linear",
    "moves",
    "quantize_linear",
    "rounded",
]


def dequantize_linear(ctx: NodeContext) -> str:
    """``(x - zero_point) * scale``, with one scale, or one per index or block of an axis."""
    given = Quantized(ctx.input(), _along(ctx, 2) if moves(ctx, 2) else None, _along(ctx, 1))
    dtype = ctx.type(1).dtype
    wanted = ctx.attr("output_dtype", 0)
    value = ctx.cast(given.value, dtype)
    if given.zero is not None:
        value = ctx.apply(Fn.SUB, value, ctx.cast(given.zero, dtype))
    value = ctx.apply(Fn.MUL, value, given.scale)
    value = ctx.cast(value, dtype_of(wanted)) if wanted else value
    ctx.builder.quantized[value] = given
    return value


def moves(ctx: NodeContext, operand: int) -> bool:
    """Whether the operand is a zero point other than 0."""
    if not ctx.has_input(operand):
        return False
    array = ctx.builder.constants.get(ctx.input(operand))
    return array is None or bool(array.any())


def quantize_linear(ctx: NodeContext) -> str:
    """``round(x / scale) + zero_point``, halves to even, clipped to the range of the integers."""
    ctx.require_float()
    wanted = ctx.attr("output_dtype", 0)
    dtype = DType.UINT8 if not wanted else dtype_of(wanted)
    dtype = ctx.type(2).dtype if ctx.has_input(2) else dtype
    if not dtype.is_int or dtype.bits > 16:
        raise Unsupported(f"element type {dtype.value}", "quantize to 8 or 16 bits")
    if ctx.type(1).dtype is not ctx.type().dtype:
        raise Unsupported("y_scale", "give scales of the element type of the data")
    zero = _along(ctx, 2) if ctx.has_input(2) else None
    return rounded(ctx, ctx.apply(Fn.DIV, ctx.input(), _along(ctx, 1)), zero, dtype)


def dynamic_quantize_linear(ctx: NodeContext) -> tuple[str, str, str]:
    """Quantize to 8 bits, with a range that just covers the data and zero."""
    ctx.require_float()
    every = tuple(range(len(ctx.shape())))
    zero = ctx.literal(0)
    low, high = (
        ctx.apply(fn, ctx.emit(Reduce(op, every, True), [ctx.input()]), zero)
        for fn, op in ((Fn.MIN, ReduceOp.MIN), (Fn.MAX, ReduceOp.MAX))
    )
    spread = ctx.apply(Fn.SUB, high, low)
    is_flat = ctx.apply(Fn.EQUAL, spread, zero)
    step = ctx.apply(Fn.DIV, spread, ctx.literal(255))
    scale = ctx.apply(Fn.WHERE, is_flat, ctx.literal(1), step)
    below = ctx.apply(Fn.NEG, ctx.apply(Fn.DIV, low, scale))
    offset = rounded(ctx, below, None, DType.UINT8)
    data = rounded(ctx, ctx.apply(Fn.DIV, ctx.input(), scale), offset, DType.UINT8)
    return data, ctx.reshape(scale, ()), ctx.reshape(offset, ())


def rounded(ctx: NodeContext, value: str, zero: str | None, dtype: DType) -> str:
    """*value* rounded, halves to even, plus *zero*, clipped to the range of *dtype*."""
    real = ctx.builder.types[value].dtype
    value = ctx.apply(Fn.ROUND, value)
    if zero is not None:
        value = ctx.apply(Fn.ADD, value, ctx.cast(zero, real))
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    bounds = (float(low), float(low + (1 << dtype.bits) - 1))
    return ctx.cast(ctx.apply(Fn.CLIP, value, params=bounds), dtype)


def _along(ctx: NodeContext, index: int) -> str:
    """Operand *index*, shaped to broadcast: one number, or one per index or block of ``axis``."""
    own, full, block = ctx.shape(index), ctx.shape(), ctx.attr("block_size", 0)
    if not own or own == (1,):
        return ctx.reshape(ctx.input(index), ())
    axis = ctx.axis(ctx.attr("axis", 1), len(full))
    if block:
        blocks = (*full[:axis], -(-full[axis] // block), *full[axis + 1 :])
        if own != blocks:
            raise Unsupported(f"scales of shape {own}", f"give those of shape {blocks}")
        times = tuple(block if d == axis else 1 for d in range(len(full)))
        return ctx.slice(ctx.emit(Repeat(times), [ctx.input(index)]), {axis: Cut(0, full[axis])})
    if own != (full[axis],):
        raise Unsupported(f"scales of shape {own}", f"give {full[axis]} or one")
    shape: Shape = tuple(own[0] if d == axis else 1 for d in range(len(full)))
    return ctx.reshape(ctx.input(index), shape)


OPERATORS: dict[str, Callable[[NodeContext], str | tuple[str, ...]]] = {
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "QuantizeLinear": quantize_linear,
}
