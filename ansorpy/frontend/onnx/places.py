"""Operators that depend on an element's position: running sums, triangles, one-hot rows."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.op import ArgReduce, Cast, CumSum, Fn, ReduceOp
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def cum_sum(ctx: NodeContext) -> str:
    """The running sum along an axis, forwards or backwards."""
    (axis,) = ctx.constant_ints(1, "axis")
    exclusive, backwards = bool(ctx.attr("exclusive", 0)), bool(ctx.attr("reverse", 0))
    op = CumSum(ctx.axis(axis, len(ctx.shape())), exclusive, backwards)
    return ctx.emit(op, [ctx.input()])


def trilu(ctx: NodeContext) -> str:
    """The operand with zeros below (``upper``) or above a diagonal of the last two axes."""
    *_, rows, columns = ctx.shape()
    k = int(ctx.constant(1, "k").item()) if ctx.has_input(1) else 0
    row, column = np.ogrid[:rows, :columns]
    kept = column - row >= k if ctx.attr("upper", 1) else column - row <= k
    if kept.all():
        return ctx.input()
    return ctx.apply(Fn.WHERE, ctx.literal(kept, DType.BOOL), ctx.input(), ctx.literal(0))


def one_hot(ctx: NodeContext) -> str:
    """A new axis that holds one value at the given index and another elsewhere.

    Negative indices count from the end; an index out of range selects no position.
    """
    (depth,) = ctx.constant_ints(1, "depth")
    values = np.asarray(ctx.constant(2, "values"))
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", -1), len(shape) + 1)
    given = ctx.input()
    if ctx.type().dtype is not DType.INT64:
        given = ctx.emit(Cast(DType.INT64), [given])
    given = ctx.reshape(given, (*shape[:axis], 1, *shape[axis:]))
    places = np.arange(depth).reshape(-1, *(1,) * (len(shape) - axis))
    here = ctx.apply(Fn.EQUAL, given, ctx.literal(places, DType.INT64))
    behind = ctx.apply(Fn.EQUAL, given, ctx.literal(places - depth, DType.INT64))
    dtype = ctx.type(2).dtype
    off, on = (ctx.literal(v, dtype) for v in values)
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.OR, here, behind), on, off)


def hardmax(ctx: NodeContext) -> str:
    """1 at the first of the largest elements along an axis, 0 elsewhere."""
    shape = ctx.shape()
    if ctx.opset < 13:
        raise Unsupported("axis", "export with opset 13 or later")
    axis = ctx.axis(ctx.attr("axis", -1), len(shape))
    first = ctx.emit(ArgReduce(ReduceOp.MAX, axis), [ctx.input()])
    places = np.arange(shape[axis]).reshape(-1, *(1,) * (len(shape) - axis - 1))
    found = ctx.apply(Fn.EQUAL, first, ctx.literal(places, DType.INT64))
    return ctx.emit(Cast(ctx.type().dtype), [found])


OPERATORS = {"CumSum": cum_sum, "Hardmax": hardmax, "OneHot": one_hot, "Trilu": trilu}
