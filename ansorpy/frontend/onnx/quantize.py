"""Quantization to small integers and back; everything in between is computed in floats."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Unsupported, dtype_of
from ansorpy.graph.op import Cast, Fn, Repeat, Shape
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def dequantize_linear(ctx: NodeContext) -> str:
    """``(x - zero_point) * scale``, with one scale, or one per index or block of an axis."""
    scale = _along(ctx, 1)
    dtype = ctx.type(1).dtype
    wanted = ctx.attr("output_dtype", 0)
    value = _cast(ctx, ctx.input(), dtype)
    if ctx.has_input(2):
        value = ctx.apply(Fn.SUB, value, _cast(ctx, _along(ctx, 2), dtype))
    value = ctx.apply(Fn.MUL, value, scale)
    return _cast(ctx, value, dtype_of(wanted)) if wanted else value


def quantize_linear(ctx: NodeContext) -> str:
    """``round(x / scale) + zero_point``, halves to even, clipped to the range of the integers."""
    ctx.require_float()
    wanted = ctx.attr("output_dtype", 0)
    dtype = DType.UINT8 if not wanted else dtype_of(wanted)
    dtype = ctx.type(2).dtype if ctx.has_input(2) else dtype
    if not dtype.is_int or dtype.bits > 16:
        raise Unsupported(f"element type {dtype.value}", "quantize to 8 or 16 bits")
    real = ctx.type().dtype
    if ctx.type(1).dtype is not real:
        raise Unsupported("y_scale", "give scales of the element type of the data")
    value = ctx.apply(Fn.ROUND, ctx.apply(Fn.DIV, ctx.input(), _along(ctx, 1)))
    if ctx.has_input(2):
        value = ctx.apply(Fn.ADD, value, _cast(ctx, _along(ctx, 2), real))
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    bounds = (float(low), float(low + (1 << dtype.bits) - 1))
    return _cast(ctx, ctx.apply(Fn.CLIP, value, params=bounds), dtype)


def _cast(ctx: NodeContext, value: str, dtype: DType) -> str:
    return value if ctx.builder.types[value].dtype is dtype else ctx.emit(Cast(dtype), [value])


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
        return ctx.slice(ctx.emit(Repeat(times), [ctx.input(index)]), [*map(range, full)])
    if own != (full[axis],):
        raise Unsupported(f"scales of shape {own}", f"give {full[axis]} or one")
    shape: Shape = tuple(own[0] if d == axis else 1 for d in range(len(full)))
    return ctx.reshape(ctx.input(index), shape)


OPERATORS = {"DequantizeLinear": dequantize_linear, "QuantizeLinear": quantize_linear}
