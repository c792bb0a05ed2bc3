"""Convolutions and matrix products of 8-bit integers, with or without requantized results."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.operators.matmul import as_matrices, without_axes
from ansorpy.frontend.onnx.operators.windows import biased, conv_op
from ansorpy.frontend.onnx.quantized.quantize import moves, rounded
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.integers import convolved, multiplied
from ansorpy.graph.ir import Integers
from ansorpy.graph.ops import Fn, Shape

__all__ = ["OPERATORS"]


def conv_integer(ctx: NodeContext) -> str:
    """The convolution of data and weight minus their zero points."""
    return _convolved(ctx, weight=1, zeros=(2, 3))


def matmul_integer(ctx: NodeContext) -> str:
    """The product of two matrices minus their zero points."""
    product = _multiplied(ctx, other=1, zeros=(2, 3))
    return without_axes(ctx, product, ctx.shape(), ctx.shape(1))


def qlinear_conv(ctx: NodeContext) -> str:
    """A convolution of quantized data and weights, plus an int32 bias, requantized."""
    channels = ctx.shape(3)[0]
    summed = biased(ctx, _convolved(ctx, weight=3, zeros=(2, 5)), channels, 8)
    behind = (1,) * (len(ctx.shape()) - 2)
    weight_scale = _row(ctx, 4, (channels, *behind))
    return _requantized(ctx, summed, [_number(ctx, 1), weight_scale], 6)


def qlinear_matmul(ctx: NodeContext) -> str:
    """A product of quantized matrices, requantized."""
    summed = _multiplied(ctx, other=3, zeros=(2, 5))
    scales = [_of_rows(ctx, 1), _of_columns(ctx, 4, 3)]
    product = _requantized(ctx, summed, scales, 6)
    return without_axes(ctx, product, ctx.shape(), ctx.shape(3))


def _convolved(ctx: NodeContext, *, weight: int, zeros: tuple[int, int]) -> str:
    """The convolution with the operand *weight*; *zeros* are the operands with zero points."""
    op = conv_op(ctx, weight)
    of_data, of_weight = zeros
    zero = _row(ctx, of_data, ()) if moves(ctx, of_data) else None
    by_channel = (ctx.shape(weight)[0], *(1,) * (len(ctx.shape(weight)) - 1))
    weights = _row(ctx, of_weight, by_channel) if moves(ctx, of_weight) else None
    given = Integers(ctx.input(), zero), Integers(ctx.input(weight), weights)
    return convolved(ctx, op, *given)


def _multiplied(ctx: NodeContext, *, other: int, zeros: tuple[int, int]) -> str:
    """The product with the operand *other*; *zeros* are the operands with zero points.

    A vector becomes a row on the left, and a column on the right.
    """
    if not ctx.shape() or not ctx.shape(other):
        raise Unsupported("operand shapes", "give matrices or vectors, not single numbers")
    left, right = zeros
    of_left = _of_rows(ctx, left) if moves(ctx, left) else None
    of_right = _of_columns(ctx, right, other) if moves(ctx, right) else None
    a, b = as_matrices(ctx, ctx.input(), ctx.input(other))
    return multiplied(ctx, Integers(a, of_left), Integers(b, of_right))


def _requantized(ctx: NodeContext, summed: str, scales: Sequence[str], operand: int) -> str:
    """*summed* times *scales* over the scale at *operand*, plus the zero point in the next one."""
    wide = ctx.type(operand).dtype.of_sums
    first, second, step = (ctx.cast(s, wide) for s in (*scales, _number(ctx, operand)))
    scale = ctx.apply(Fn.DIV, ctx.apply(Fn.MUL, first, second), step)
    value = ctx.apply(Fn.MUL, ctx.cast(summed, wide), scale)
    return rounded(ctx, value, _number(ctx, operand + 1), ctx.type(operand + 1).dtype)


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
    rows = ctx.shape()[-2:-1]
    return _row(ctx, operand, (*rows, 1)) if len(own) < 2 else ctx.input(operand)


def _of_columns(ctx: NodeContext, operand: int, matrix: int) -> str:
    """An operand that is one number, or one for each column of the operand *matrix*."""
    own = ctx.shape(operand)
    columns = ctx.shape(matrix)[1:][-1:]
    return _row(ctx, operand, columns) if len(own) < 2 else ctx.input(operand)


OPERATORS = {
    "ConvInteger": conv_integer,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
}
