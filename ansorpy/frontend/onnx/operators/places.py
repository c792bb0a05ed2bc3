"""Operators that depend on an element's position: cumulative sums, triangles, ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.ops import (
    ArgReduce,
    Cast,
    Cumulative,
    Expand,
    Fn,
    GatherElements,
    Reduce,
    ReduceOp,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dims_of, least, most

__all__ = ["OPERATORS"]


def _cumulative(kind: ReduceOp) -> Callable[[NodeContext], str]:
    """The cumulative sum or product along an axis, forwards or backwards."""

    def build(ctx: NodeContext) -> str:
        (axis,) = ctx.constant_ints(1, "axis")
        exclusive, backwards = bool(ctx.attr("exclusive", 0)), bool(ctx.attr("reverse", 0))
        op = Cumulative(kind, ctx.axis(axis, len(ctx.shape())), exclusive, backwards)
        return ctx.emit(op, [ctx.input()])

    return build


def trilu(ctx: NodeContext) -> str:
    """The operand with zeros below (``upper``) or above a diagonal of the last two axes."""
    *_, rows, columns = ctx.shape()
    (k,) = ctx.extents(1, "k") if ctx.has_input(1) else (0,)
    upper = bool(ctx.attr("upper", 1))
    if dims_of([rows, columns, k]):
        diagonal = ctx.apply(Fn.ADD, ctx.places(rows, 1), ctx.size(k, DType.INT64))
        pair = (diagonal, ctx.places(columns))
        inside = ctx.apply(Fn.LESS_EQUAL, *(pair if upper else pair[::-1]))
        return ctx.apply(Fn.WHERE, inside, ctx.input(), ctx.literal(0))
    row, column = np.ogrid[:rows, :columns]
    kept = column - row >= k if upper else column - row <= k
    if kept.all():
        return ctx.input()
    return ctx.apply(Fn.WHERE, ctx.literal(kept, DType.BOOL), ctx.input(), ctx.literal(0))


def one_hot(ctx: NodeContext) -> str:
    """A new axis that holds one value at the given index and another elsewhere.

    Negative indices count from the end; an index out of range selects no position.
    """
    (depth,) = ctx.extents(1, "depth")
    values = np.asarray(ctx.constant(2, "values"))
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", -1), len(shape) + 1)
    given = ctx.input()
    if ctx.type().dtype is not DType.INT64:
        given = ctx.emit(Cast(DType.INT64), [given])
    given = ctx.reshape(given, (*shape[:axis], 1, *shape[axis:]))
    places = ctx.places(depth, len(shape) - axis)
    here = ctx.apply(Fn.EQUAL, given, places)
    last = ctx.apply(Fn.SUB, places, ctx.size(depth, DType.INT64))
    behind = ctx.apply(Fn.EQUAL, given, last)
    dtype = ctx.type(2).dtype
    off, on = (ctx.literal(v, dtype) for v in values)
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.OR, here, behind), on, off)


def reverse_sequence(ctx: NodeContext) -> str:
    """Each sequence of a batch, of its own length, backwards; what lies behind it stays."""
    shape = ctx.shape()
    batch, time = ctx.attr("batch_axis", 1), ctx.attr("time_axis", 0)
    if {batch, time} != {0, 1}:
        raise Unsupported(f"batch_axis={batch}, time_axis={time}", "one is 0, and the other 1")
    lengths = ctx.reshape(ctx.cast(ctx.input(1), DType.INT64), (shape[batch], *(1,) * (1 - batch)))
    places = ctx.places(shape[time], 1 - time)
    inside = ctx.apply(Fn.LESS, places, lengths)
    last = ctx.apply(Fn.SUB, lengths, ctx.literal(1, DType.INT64))
    source = ctx.apply(Fn.WHERE, inside, ctx.apply(Fn.SUB, last, places), places)
    whole = ctx.emit(Expand(shape), [ctx.reshape(source, (*shape[:2], *(1,) * (len(shape) - 2)))])
    return ctx.emit(GatherElements(time), [ctx.input(), whole])


def hardmax(ctx: NodeContext) -> str:
    """1 at the first of the largest elements along an axis, 0 elsewhere."""
    shape = ctx.shape()
    if ctx.opset < 13:
        raise Unsupported("axis", "export with opset 13 or later")
    axis = ctx.axis(ctx.attr("axis", -1), len(shape))
    first = ctx.emit(ArgReduce(ReduceOp.MAX, axis), [ctx.input()])
    found = ctx.apply(Fn.EQUAL, first, ctx.places(shape[axis], len(shape) - axis - 1))
    return ctx.emit(Cast(ctx.type().dtype), [found])


def top_k(ctx: NodeContext) -> tuple[str, str]:
    """The largest or smallest elements along an axis, in order, and their positions.

    The rank of an element is the number of elements before it.  Among equal elements, the first
    comes before the others; NaN is above all numbers.  All pairs are compared.
    """
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", -1), len(shape))
    (count,) = ctx.extents(1, "K") if ctx.opset >= 10 else (ctx.attr("k", 0),)
    extent = shape[axis]
    if least(count) < 0 or ctx.is_less(extent, count):
        raise Unsupported(f"K={count}", f"the axis has {extent} elements")
    if most(extent) > _MOST_RANKED:
        advice = f"sort at most {_MOST_RANKED} elements, or do it outside the network"
        raise Unsupported(f"axis of {extent} elements", advice)
    rank = _ranks(ctx, axis, bool(ctx.attr("largest", 1)))
    behind = (1,) * (len(shape) - axis - 1)
    wanted = ctx.places(count, len(behind) + 1, DType.INT32)
    found = ctx.apply(Fn.EQUAL, ctx.reshape(rank, (*shape[:axis], 1, *shape[axis:])), wanted)
    place = ctx.places(extent, len(behind), DType.INT32)
    chosen = ctx.apply(Fn.WHERE, found, place, ctx.literal(0, DType.INT32))
    places = ctx.emit(Reduce(ReduceOp.SUM, (axis + 1,), False), [chosen])
    places = ctx.emit(Cast(DType.INT64), [places])
    return ctx.emit(GatherElements(axis), [ctx.input(), places]), places


_MOST_RANKED = 1024
"""Comparing all pairs of this many elements takes about 0.1 ms; for more, sorting is faster."""


def _ranks(ctx: NodeContext, axis: int, largest: bool) -> str:
    """The number of elements before each one along *axis*, as int32."""
    shape = ctx.shape()
    extent = shape[axis]
    own = ctx.reshape(ctx.input(), (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    other = ctx.reshape(ctx.input(), (*shape[:axis], 1, *shape[axis:]))
    low, high = (own, other) if largest else (other, own)
    behind = len(shape) - axis - 1
    if isinstance(extent, int):
        square = np.tri(extent, k=-1, dtype=bool).reshape(extent, extent, *(1,) * behind)
        earlier = ctx.literal(square, DType.BOOL)  # the other element comes first
    else:
        earlier = ctx.apply(Fn.LESS, ctx.places(extent, behind), ctx.places(extent, behind + 1))
    above = ctx.apply(Fn.NOT, _at_most(ctx, high, low))
    before = ctx.apply(Fn.WHERE, earlier, _at_most(ctx, low, high), above)
    counted = ctx.emit(Cast(DType.INT32), [before])
    return ctx.emit(Reduce(ReduceOp.SUM, (axis + 1,), False), [counted])


def _at_most(ctx: NodeContext, a: str, b: str) -> str:
    """Whether *a* is at most *b*; a NaN is above all numbers, so that every element has a rank."""
    found = ctx.apply(Fn.LESS_EQUAL, a, b)
    if not ctx.type().dtype.is_float:
        return found
    return ctx.apply(Fn.OR, found, ctx.apply(Fn.IS_NAN, b))


OPERATORS: dict[str, Callable[[NodeContext], str | tuple[str, ...]]] = {
    "CumProd": _cumulative(ReduceOp.PROD),
    "CumSum": _cumulative(ReduceOp.SUM),
    "Hardmax": hardmax,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "TopK": top_k,
    "Trilu": trilu,
}
