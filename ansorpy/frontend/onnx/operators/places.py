"""Operators that depend on an element's position: cumulative sums, triangles, one-hot rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import (
    ArgReduce,
    Cast,
    Computed,
    Expand,
    Fn,
    GatherElements,
    ReduceKind,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, prod_of
from ansorpy.ir.routines.prefix import Prefixes

__all__ = ["OPERATORS", "trilu"]


def _cumulative(*, product: bool) -> Callable[[NodeContext], str]:
    """The cumulative sum or product along an axis, forwards or backwards."""

    def build(ctx: NodeContext) -> str:
        (given,) = ctx.constant_ints(1, "axis")
        shape = ctx.shape()
        axis = ctx.axis(given, len(shape))
        flat = prod_of(shape[:axis]), shape[axis], prod_of(shape[axis + 1 :])
        exclusive, backwards = bool(ctx.attr("exclusive", 0)), bool(ctx.attr("reverse", 0))
        op = Computed(Prefixes(product, exclusive, backwards), flat, ctx.type().dtype)
        return ctx.reshape(ctx.emit(op, [ctx.reshape(ctx.input(), flat)]), shape)

    return build


def trilu(ctx: NodeContext) -> str:
    """The operand with zeros below (``upper``) or above a diagonal of the last two axes."""
    *_, rows, columns = ctx.shape()
    k = _diagonal(ctx)
    upper = bool(ctx.attr("upper", 1))
    if k is None or dims_of([rows, columns, k]):
        offset = ctx.reshape(ctx.input(1), ()) if k is None else ctx.size(k, DType.INT64)
        diagonal = ctx.apply(Fn.ADD, ctx.places(rows, 1), offset)
        pair = (diagonal, ctx.places(columns))
        inside = ctx.apply(Fn.LESS_EQUAL, *(pair if upper else pair[::-1]))
        return ctx.apply(Fn.WHERE, inside, ctx.input(), ctx.literal(0))
    row, column = np.ogrid[:rows, :columns]
    kept = column - row >= k if upper else column - row <= k
    if kept.all():
        return ctx.input()
    return ctx.apply(Fn.WHERE, ctx.literal(kept, DType.BOOL), ctx.input(), ctx.literal(0))


def _diagonal(ctx: NodeContext) -> AnyExtent | None:
    """Which diagonal a triangle ends at; None if only a run knows it."""
    if not ctx.has_input(1):
        return 0
    if ctx.operand(1) not in ctx.known and ctx.input(1) not in ctx.builder.constants:
        return None
    (k,) = ctx.extents(1, "k")
    return k


def one_hot(ctx: NodeContext) -> str:
    """A new axis that holds one value at the given index and another elsewhere.

    Negative indices count from the end; an index out of range selects no position.
    """
    (depth,) = ctx.extents(1, "depth")
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
    off, on = (ctx.reshape(ctx.slice(ctx.input(2), {0: Cut(n, 1)}), ()) for n in range(2))
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
    """1 at the first of the largest elements along an axis, or in old models among those of all
    axes from ``axis`` on; 0 elsewhere."""
    whole = shape = ctx.shape()
    x, axis = ctx.input(), ctx.axis(ctx.attr("axis", -1 if ctx.opset >= 13 else 1), len(shape))
    if ctx.opset < 13:
        shape, axis = (prod_of(whole[:axis]), prod_of(whole[axis:])), 1
        x = ctx.reshape(x, shape)
    first = ctx.emit(ArgReduce(ReduceKind.MAX, axis), [x])
    found = ctx.apply(Fn.EQUAL, first, ctx.places(shape[axis], len(shape) - axis - 1))
    return ctx.reshape(ctx.emit(Cast(ctx.type().dtype), [found]), whole)


OPERATORS: dict[str, Translate] = {
    "CumProd": _cumulative(product=True),
    "CumSum": _cumulative(product=False),
    "Hardmax": hardmax,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "Trilu": trilu,
}
