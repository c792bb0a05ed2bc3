"""Products of 8-bit integers, summed exactly in 32 bits.

Constant weights without a zero point, or whose values less it still have 8 bits, are multiplied as
they are, so that the instructions for 8-bit dot products apply; the data's zero point is taken off
the sums::

    sum (x - zero) * w = sum x * w - zero * sum w

Others are multiplied as 32-bit integers, zero points subtracted before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.quantize import rounded
from ansorpy.frontend.onnx.windows import biased, kernel_of, windows_of
from ansorpy.graph.ir import Array
from ansorpy.graph.op import NARROW, Conv, Fn, MatMul, Pad, PadMode, Shape
from ansorpy.ir.dtypes import DType, as_dtype

__all__ = ["OPERATORS"]


def conv_integer(ctx: NodeContext) -> str:
    """The convolution of data and weight less their zero points."""
    return _convolved(ctx, weight=1, zeros=(2, 3))


def matmul_integer(ctx: NodeContext) -> str:
    """The product of two matrices less their zero points."""
    return _multiplied(ctx, other=1, zeros=(2, 3))


def qlinear_conv(ctx: NodeContext) -> str:
    """A convolution of quantized data and weights, plus an int32 bias, quantized again."""
    channels = ctx.shape(3)[0]
    summed = biased(ctx, _convolved(ctx, weight=3, zeros=(2, 5)), channels, 8)
    behind = (1,) * (len(ctx.shape()) - 2)
    weight_scale = _row(ctx, 4, (channels, *behind))
    return _requantized(ctx, summed, [_number(ctx, 1), weight_scale], 6)


def qlinear_matmul(ctx: NodeContext) -> str:
    """A product of quantized matrices, quantized again."""
    summed = _multiplied(ctx, other=3, zeros=(2, 5))
    return _requantized(ctx, summed, [_of_rows(ctx, 1), _of_columns(ctx, 4, 3)], 6)


def _convolved(ctx: NodeContext, *, weight: int, zeros: tuple[int, int]) -> str:
    kernel, groups = kernel_of(ctx, "output channels", weight)
    w = windows_of(ctx, ctx.shape()[2:], kernel)
    op = Conv(w.strides, w.pads_begin, w.pads_end, w.dilations, groups)
    channels, behind = ctx.shape(weight)[0], (1,) * len(kernel)
    zero = _row(ctx, zeros[0], ()) if _moves(ctx, zeros[0]) else None
    of_weight = _row(ctx, zeros[1], (channels, 1, *behind)) if _moves(ctx, zeros[1]) else None
    narrow = _narrow(ctx, weight, of_weight)
    is_padded = any(w.pads_begin + w.pads_end)
    fill = 0 if zero is None else ctx.builder.constants.get(zero)
    if narrow is None or (is_padded and fill is None):
        return ctx.emit(
            op, [_less(ctx, ctx.input(), zero), _less(ctx, ctx.input(weight), of_weight)]
        )
    data = ctx.input()
    if is_padded and zero is not None and fill is not None:
        ends = (0, 0, *w.pads_begin), (0, 0, *w.pads_end)
        data = ctx.emit(Pad(*ends, PadMode.CONSTANT, float(fill)), [data])
        op = replace(op, pads_begin=(0,) * len(kernel), pads_end=(0,) * len(kernel))
    product = ctx.emit(op, [data, ctx.literal(narrow, as_dtype(narrow.dtype))])
    sums = narrow.sum(axis=tuple(range(1, narrow.ndim)), dtype=np.int32)
    return _taken_off(ctx, product, zero, sums.reshape(channels, *behind))


def _multiplied(ctx: NodeContext, *, other: int, zeros: tuple[int, int]) -> str:
    if min(len(ctx.shape()), len(ctx.shape(other))) < 2:
        raise Unsupported("operand shapes", "give matrices, no vectors")
    left, right = zeros
    zero = _of_rows(ctx, left) if _moves(ctx, left) else None
    of_other = _of_columns(ctx, right, other) if _moves(ctx, right) else None
    narrow = _narrow(ctx, other, of_other)
    if narrow is None:
        a, b = _less(ctx, ctx.input(), zero), _less(ctx, ctx.input(other), of_other)
        return ctx.emit(MatMul(), [a, b])
    product = ctx.emit(MatMul(), [ctx.input(), ctx.literal(narrow, as_dtype(narrow.dtype))])
    return _taken_off(ctx, product, zero, narrow.sum(axis=-2, dtype=np.int32, keepdims=True))


def _moves(ctx: NodeContext, operand: int) -> bool:
    """Whether the operand is a zero point other than 0."""
    if not ctx.has_input(operand):
        return False
    array = ctx.builder.constants.get(ctx.input(operand))
    return array is None or bool(array.any())


def _narrow(ctx: NodeContext, operand: int, zero: str | None) -> Array | None:
    """A constant operand less its constant zero point, if all of that are 8-bit integers."""
    array = ctx.builder.constants.get(ctx.input(operand))
    offset = np.zeros((), np.int8) if zero is None else ctx.builder.constants.get(zero)
    if array is None or offset is None:
        return None
    moved = array.astype(np.int32) - offset.astype(np.int32)
    for dtype in NARROW:
        low, high = dtype.limits
        if low <= moved.min(initial=0) and moved.max(initial=0) <= high:
            return moved.astype(dtype.numpy)
    return None


def _taken_off(ctx: NodeContext, product: str, zero: str | None, sums: Array) -> str:
    """*product* of data with the zero point *zero*, less what that adds, of the weights' *sums*."""
    if zero is None:
        return product
    added = ctx.apply(Fn.MUL, ctx.cast(zero, DType.INT32), ctx.literal(sums, DType.INT32))
    return ctx.apply(Fn.SUB, product, added)


def _less(ctx: NodeContext, value: str, zero: str | None) -> str:
    """*value* less its zero point, as int32."""
    value = ctx.cast(value, DType.INT32)
    return value if zero is None else ctx.apply(Fn.SUB, value, ctx.cast(zero, DType.INT32))


def _requantized(ctx: NodeContext, summed: str, scales: Sequence[str], operand: int) -> str:
    """*summed* times *scales* over the scale at *operand*, plus the zero point behind that."""
    first, second = scales
    scale = ctx.apply(Fn.DIV, ctx.apply(Fn.MUL, first, second), _number(ctx, operand))
    real = ctx.cast(summed, ctx.builder.types[scale].dtype)
    dtype = ctx.type(operand + 1).dtype
    return rounded(ctx, ctx.apply(Fn.MUL, real, scale), _number(ctx, operand + 1), dtype)


def _number(ctx: NodeContext, operand: int) -> str:
    """An operand that is one number."""
    return _row(ctx, operand, ())


def _row(ctx: NodeContext, operand: int, shape: Shape) -> str:
    """An operand that is one number, or as many as *shape* has elements."""
    own = ctx.shape(operand)
    if own in ((), (1,)):
        return ctx.reshape(ctx.input(operand), ())
    wanted = max(shape, default=1)
    if own != (wanted,):
        raise Unsupported(f"scales or zero points of shape {own}", f"give {wanted} or one")
    return ctx.reshape(ctx.input(operand), shape)


def _of_rows(ctx: NodeContext, operand: int) -> str:
    """An operand that is one number, or one for each row of the first matrix."""
    own = ctx.shape(operand)
    return _row(ctx, operand, (ctx.shape()[-2], 1)) if len(own) < 2 else ctx.input(operand)


def _of_columns(ctx: NodeContext, operand: int, matrix: int) -> str:
    """An operand that is one number, or one for each column of the operand *matrix*."""
    own = ctx.shape(operand)
    return _row(ctx, operand, ctx.shape(matrix)[-1:]) if len(own) < 2 else ctx.input(operand)


OPERATORS = {
    "ConvInteger": conv_integer,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
}
