"""Operators of quantized networks: on integers with scales and zero points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operands import with_operands
from ansorpy.frontend.onnx.operators.matmul import as_matrices, without_axes
from ansorpy.frontend.onnx.operators.normalization import softmax
from ansorpy.frontend.onnx.operators.pool import average_pool
from ansorpy.frontend.onnx.quantized.quantize import (
    dequantize_linear,
    dynamic_quantize_linear,
    moves,
    quantize_linear,
    rounded,
    scaled,
)
from ansorpy.graph.integers import multiplied
from ansorpy.graph.ir import Integers
from ansorpy.graph.ops import Concat, Fn, Reduce, ReduceKind
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS", "average_pool_of", "number_or_row", "of_one", "product", "zero_point"]


def _real(ctx: NodeContext, first: int) -> str:
    """The numbers that operands *first* (integers), *first* + 1 (scale) and + 2 (zero) mean."""
    scale = ctx.reshape(ctx.input(first + 1), ())
    zero = ctx.reshape(ctx.input(first + 2), ()) if moves(ctx, first + 2) else None
    return scaled(ctx, ctx.input(first), zero, scale, ctx.type(first + 1).dtype)


def _integers(ctx: NodeContext, value: str, first: int, dtype: DType) -> str:
    """*value* as integers of the scale and zero point that are operands *first* and + 1."""
    ratio = ctx.apply(Fn.DIV, value, ctx.reshape(ctx.input(first), ()))
    zero = ctx.reshape(ctx.input(first + 1), ()) if ctx.has_input(first + 1) else None
    return rounded(ctx, ratio, zero, dtype)


def _pairwise(fn: Fn) -> Callable[[NodeContext], str]:
    def build(ctx: NodeContext) -> str:
        value = ctx.apply(fn, _real(ctx, 0), _real(ctx, 3))
        return _integers(ctx, value, 6, ctx.type(0).dtype)

    return build


def of_one(compute: Callable[[NodeContext, str], str]) -> Callable[[NodeContext], str]:
    """An importer of an operator on one quantized operand that *compute* defines on numbers."""

    def build(ctx: NodeContext) -> str:
        return _integers(ctx, compute(ctx, _real(ctx, 0)), 3, ctx.type(0).dtype)

    return build


def _sigmoid(ctx: NodeContext, x: str) -> str:
    return ctx.apply(Fn.SIGMOID, x)


def _leaky_relu(ctx: NodeContext, x: str) -> str:
    return ctx.apply(Fn.LEAKY_RELU, x, params=(float(ctx.attr("alpha", 0.01)),))


def _mean(ctx: NodeContext, x: str) -> str:
    rank = len(ctx.shape())
    axes = tuple(sorted(ctx.axes(ctx.ints("axes", ()) or range(rank), rank)))
    return _mean_over(ctx, x, axes, keep=bool(ctx.attr("keepdims", 1)))


def _global_average_pool(ctx: NodeContext, x: str) -> str:
    rank = len(ctx.shape())
    axes = range(1, rank - 1) if ctx.attr("channels_last", 0) else range(2, rank)
    return _mean_over(ctx, x, tuple(axes), keep=True)


def _mean_over(ctx: NodeContext, x: str, axes: tuple[int, ...], *, keep: bool) -> str:
    total = ctx.emit(Reduce(ReduceKind.SUM, axes, keep), [x])
    count = prod_of(ctx.shape()[axis] for axis in axes)
    dtype = ctx.type_of(total).dtype
    return ctx.apply(Fn.DIV, total, ctx.size(count, dtype))


def _on_numbers(
    importer: Callable[[NodeContext], str], **usual: int
) -> Callable[[NodeContext, str], str]:
    """*importer* of another operator with the same attributes, some *usual*, on numbers."""

    def compute(ctx: NodeContext, x: str) -> str:
        opset = int(ctx.attr("opset", ctx.opset))
        return importer(replace(with_operands(ctx, {0: x}, **usual), opset=opset))

    return compute


average_pool_of = _on_numbers(average_pool)
"""Means of windows of numbers."""


def qlinear_concat(ctx: NodeContext) -> str:
    """Operands of different scales joined, with one scale."""
    dtype = ctx.type(2).dtype
    parts = [_integers(ctx, _real(ctx, n), 0, dtype) for n in range(2, len(ctx.node.input), 3)]
    axis = ctx.axis(ctx.attr("axis", 0), len(ctx.shape(2)))
    return parts[0] if len(parts) == 1 else ctx.emit(Concat(axis), parts)


def qlinear_where(ctx: NodeContext) -> str:
    """An element of the first or of the second operand, whose scales differ, with one scale."""
    chosen = ctx.apply(Fn.WHERE, ctx.input(0), _real(ctx, 1), _real(ctx, 4))
    return _integers(ctx, chosen, 7, ctx.type(1).dtype)


def number_or_row(ctx: NodeContext, operand: int) -> str:
    """An operand that is one number, or one for each column."""
    shape = ctx.shape(operand)
    return ctx.reshape(ctx.input(operand), ()) if shape in ((), (1,)) else ctx.input(operand)


def zero_point(ctx: NodeContext, operand: int) -> str | None:
    """The zero points that an operand is, one number or one for each column; None if all are 0."""
    return number_or_row(ctx, operand) if moves(ctx, operand) else None


def product(ctx: NodeContext, left: Integers, right: int, zero: int, *scales: str) -> str:
    """*left* times the operand *right*, whose zero point is operand *zero*, times two *scales*."""
    shapes = ctx.type_of(left.value).shape, ctx.shape(right)
    a, b = as_matrices(ctx, left.value, ctx.input(right))
    summed = multiplied(ctx, replace(left, value=a), Integers(b, zero_point(ctx, zero)))
    dtype = ctx.type_of(scales[0]).dtype
    scale = ctx.apply(Fn.MUL, *(ctx.cast(one, dtype.of_sums) for one in scales))
    return without_axes(ctx, scaled(ctx, summed, None, scale, dtype), *shapes)


def dynamic_quantize_matmul(ctx: NodeContext) -> str:
    """A product in which the first operand is quantized with the range that it has."""
    data, step, offset = dynamic_quantize_linear(ctx)
    value = product(ctx, Integers(data, offset), 1, 3, number_or_row(ctx, 2), step)
    return ctx.plus(value, 4)


def matmul_integer_to_float(ctx: NodeContext) -> str:
    """A product of integers as real numbers, plus a bias."""
    scales = number_or_row(ctx, 3), number_or_row(ctx, 2)
    zero = zero_point(ctx, 4)
    value = product(ctx, Integers(ctx.input(0), zero), 1, 5, *scales)
    return ctx.plus(value, 6)


def qgemm(ctx: NodeContext) -> str:
    """``alpha * A' B' + C``, requantized if the result has a scale."""
    a, b = (
        ctx.transpose(ctx.input(n), (1, 0)) if ctx.attr(name, 0) else ctx.input(n)
        for n, name in ((0, "transA"), (3, "transB"))
    )
    left = Integers(a, zero_point(ctx, 2))
    right = Integers(b, zero_point(ctx, 5))
    summed = ctx.plus(multiplied(ctx, left, right), 6)
    scale = ctx.apply(Fn.MUL, number_or_row(ctx, 4), number_or_row(ctx, 1))
    alpha = float(ctx.attr("alpha", 1.0))
    real = ctx.type(1).dtype
    scale = ctx.apply(Fn.MUL, scale, ctx.literal(alpha, real)) if alpha != 1.0 else scale
    value = ctx.apply(Fn.MUL, ctx.cast(summed, real), scale)
    return _integers(ctx, value, 7, ctx.type(8).dtype) if ctx.has_input(7) else value


OPERATORS: dict[str, Translate] = {
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeMatMul": dynamic_quantize_matmul,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "QGemm": qgemm,
    "QLinearAdd": _pairwise(Fn.ADD),
    "QLinearConcat": qlinear_concat,
    "QLinearGlobalAveragePool": of_one(_global_average_pool),
    "QLinearLeakyRelu": of_one(_leaky_relu),
    "QLinearMul": _pairwise(Fn.MUL),
    "QLinearReduceMean": of_one(_mean),
    "QLinearSigmoid": of_one(_sigmoid),
    "QLinearSoftmax": of_one(_on_numbers(softmax, axis=-1)),
    "QLinearWhere": qlinear_where,
    "QuantizeLinear": quantize_linear,
}
