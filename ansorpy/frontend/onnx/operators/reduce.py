"""Reductions over axes, to values (sums, maxima ...) or to positions (argmax, argmin)."""

from __future__ import annotations

import math
from collections.abc import Callable

from ansorpy.frontend.onnx.context import NodeContext, Translate, widely
from ansorpy.graph.ops import ArgReduce, Fn, Reduce, ReduceKind, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS"]

_Single = Callable[[NodeContext], str]


def _axes(ctx: NodeContext) -> Shape:
    """The ``axes`` attribute, or the second input in newer opsets; all axes if neither is given."""
    rank = len(ctx.shape())
    axes: Shape = ctx.ints("axes", ())
    if ctx.has_input(1):
        axes = ctx.constant_ints(1, "axes")
    keeps_all = bool(ctx.attr("noop_with_empty_axes", 0))
    if axes or keeps_all:
        return tuple(sorted({ctx.axis(a, rank) for a in axes}))
    return tuple(range(rank))


def _reduction(kind: ReduceKind) -> _Single:
    def build(ctx: NodeContext) -> str:
        axes = _axes(ctx)
        if not axes:
            return ctx.input()
        op = Reduce(kind, axes, bool(ctx.attr("keepdims", 1)))
        return ctx.cast(ctx.emit(op, [ctx.operand()]), ctx.type().dtype)

    return build


def reduce_mean(ctx: NodeContext) -> str:
    """The sum times the reciprocal of the count; of integers, their quotient, cut."""
    total = _reduction(ReduceKind.SUM)(ctx)
    count = prod_of(ctx.shape()[a] for a in _axes(ctx))
    if ctx.type().dtype.is_float:
        return ctx.divided(total, count)
    return ctx.apply(Fn.DIV, total, ctx.size(count, ctx.type().dtype))


def _of(fn: Callable[[NodeContext, str], str], root: Fn | None) -> _Single:
    """An importer for the sum of *fn* over the elements, followed by *root* if given."""

    def build(ctx: NodeContext) -> str:
        total = _sum(ctx, fn(ctx, ctx.input()), bool(ctx.attr("keepdims", 1)))
        if root is None or ctx.type().dtype.is_float:
            return total if root is None else ctx.apply(root, total)
        return ctx.apply(root, ctx.cast(total, DType.FLOAT64))

    return widely(build)


def _sum(ctx: NodeContext, value: str, keepdims: bool) -> str:
    axes = _axes(ctx)
    return ctx.emit(Reduce(ReduceKind.SUM, axes, keepdims), [value]) if axes else value


def _size(ctx: NodeContext, value: str) -> str:
    return ctx.apply(Fn.ABS, value)


def _square(ctx: NodeContext, value: str) -> str:
    return ctx.apply(Fn.MUL, value, value)


def reduce_log_sum_exp(ctx: NodeContext) -> str:
    """``log(sum(exp(x - max))) + max``, in which no exponential overflows.

    Where the maximum is infinite, nothing is subtracted, and the maximum is the result.
    """
    axes = _axes(ctx)
    if not axes:
        return ctx.input()
    real = ctx.type().dtype if ctx.type().dtype.is_float else DType.FLOAT64
    top = ctx.emit(Reduce(ReduceKind.MAX, axes, True), [ctx.cast(ctx.input(), real)])
    is_finite = ctx.apply(Fn.LESS, ctx.apply(Fn.ABS, top), ctx.literal(math.inf, real))
    top = ctx.apply(Fn.WHERE, is_finite, top, ctx.literal(0, real))
    raised = ctx.apply(Fn.EXP, ctx.apply(Fn.SUB, ctx.cast(ctx.input(), real), top))
    total = ctx.apply(Fn.ADD, ctx.apply(Fn.LOG, _sum(ctx, raised, True)), top)
    if ctx.attr("keepdims", 1):
        return total
    kept = tuple(e for d, e in enumerate(ctx.shape()) if d not in axes)
    return ctx.reshape(total, kept)


def _place(kind: ReduceKind) -> _Single:
    """An importer for the index of the largest or smallest element along an axis."""

    def build(ctx: NodeContext) -> str:
        shape = ctx.shape()
        axis = ctx.axis(ctx.attr("axis", 0), len(shape))
        found = ctx.emit(
            ArgReduce(kind, axis, bool(ctx.attr("select_last_index", 0))), [ctx.input()]
        )
        if ctx.attr("keepdims", 1):
            return found
        return ctx.reshape(found, shape[:axis] + shape[axis + 1 :])

    return build


OPERATORS: dict[str, Translate] = {
    "ArgMax": _place(ReduceKind.MAX),
    "ArgMin": _place(ReduceKind.MIN),
    "ReduceL1": _of(_size, None),
    "ReduceL2": _of(_square, Fn.SQRT),
    "ReduceLogSum": _of(lambda ctx, value: value, Fn.LOG),
    "ReduceLogSumExp": widely(reduce_log_sum_exp),
    "ReduceMax": _reduction(ReduceKind.MAX),
    "ReduceMean": widely(reduce_mean),
    "ReduceMin": _reduction(ReduceKind.MIN),
    "ReduceProd": _reduction(ReduceKind.PROD),
    "ReduceSum": _reduction(ReduceKind.SUM),
    "ReduceSumSquare": _of(_square, None),
}
