"""The first elements of sorted rows, and distinct elements."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.selection.chosen import all_places, true_places
from ansorpy.frontend.onnx.unsupported import TooShort, Unknown, Unsupported
from ansorpy.graph.ops import (
    Computed,
    Elementwise,
    Fn,
    Gather,
    GatherElements,
    Reduce,
    ReduceKind,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, least, prod_of
from ansorpy.ir.routines.places import Inverse
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.rows import RowOrder
from ansorpy.ir.routines.top import TopPlaces

__all__ = ["OPERATORS"]


def top_k(ctx: NodeContext) -> tuple[str, str]:
    """The largest or smallest elements along an axis, in order, and their positions.

    Among equal elements, the first comes before the others; NaN is above all numbers.
    """
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", -1), len(shape))
    extent = shape[axis]
    count = _count(ctx, extent)
    if extent == count == 1 and not dims_of(shape):
        return ctx.input(), ctx.literal(np.zeros(shape), DType.INT64)
    last = len(shape) - 1
    moved = ctx.move_axis(ctx.input(), axis, last)
    rows = ctx.type_of(moved).shape[:-1]
    flat = ctx.reshape(moved, (prod_of(rows), extent))
    routine = TopPlaces(largest=bool(ctx.attr("largest", 1)))
    found = ctx.emit(Computed(routine, (prod_of(rows), count), DType.INT64), [flat])
    places = ctx.move_axis(ctx.reshape(found, (*rows, count)), last, axis)
    return ctx.emit(GatherElements(axis), [ctx.input(), places]), places


def _count(ctx: NodeContext, extent: AnyExtent) -> AnyExtent:
    """How many of *extent* elements are wanted; if only a run knows it, as many as there are."""
    try:
        (count,) = ctx.extents(1, "K") if ctx.opset >= 10 else (ctx.attr("k", 0),)
    except Unknown:
        given = ctx.cast(ctx.reshape(ctx.input(1), ()), DType.INT64)
        limit = [
            ctx.apply(Fn.MAX, given, ctx.literal(0, DType.INT64)),
            ctx.size(extent, DType.INT64),
        ]
        name = f"{ctx.node.output[0]}.count"
        return ctx.builder.counted(ctx.builder.emit(Elementwise(Fn.MIN), limit, name), extent)
    fault = f"K={count}", f"the axis has {extent} elements"
    if least(count) < 0:
        raise Unsupported(*fault)
    if least(extent - count) < 0:
        raise TooShort(*fault, extent - count)
    return count


def unique(ctx: NodeContext) -> tuple[str, ...]:
    """The distinct elements, or slices along an axis; where each is first; where each went; how
    often it occurs.

    They are sorted, or in the order in which they first occur.
    """
    shape, axis = ctx.shape(), ctx.attr("axis", None)
    if axis is None:
        data, place, n = ctx.reshape(ctx.input(), (prod_of(shape),)), 0, prod_of(shape)
        rows, columns = ctx.reshape(data, (1, n)), 1
        order = ctx.emit(Computed(TopPlaces(largest=False), (1, n), DType.INT64), [rows])
        order, table = ctx.reshape(order, (n,)), ctx.reshape(data, (n, 1))
    else:
        data, place = ctx.input(), ctx.axis(axis, len(shape))
        n = shape[place]
        others = tuple(d for d in range(len(shape)) if d != place)
        columns = prod_of(shape[d] for d in others)
        table = ctx.reshape(ctx.transpose(data, (place, *others)), (n, columns))
        order = ctx.emit(Computed(RowOrder(), (n,), DType.INT64), [table])
    return _distinct(ctx, data, place, order, _are_new(ctx, table, order))


def _are_new(ctx: NodeContext, table: str, order: str) -> str:
    """Whether each row of *table*, in this *order*, differs from the one before it."""
    n, columns = ctx.type_of(table).shape
    ranked = ctx.emit(Gather(0), [table, order])
    places = ctx.places(n)
    before = ctx.apply(Fn.MAX, ctx.apply(Fn.SUB, places, ctx.literal(1, DType.INT64)),
                       ctx.literal(0, DType.INT64))  # fmt: skip
    previous = ctx.emit(Gather(0), [ranked, before])
    is_same = ctx.apply(Fn.EQUAL, ranked, previous)
    if ctx.type().dtype.is_float:
        nan = ctx.apply(Fn.AND, ctx.apply(Fn.IS_NAN, ranked), ctx.apply(Fn.IS_NAN, previous))
        is_same = ctx.apply(Fn.OR, is_same, nan)
    differ = ctx.cast(ctx.apply(Fn.NOT, is_same), DType.INT64)
    number = ctx.emit(Reduce(ReduceKind.SUM, (1,), False), [differ])
    zero = ctx.literal(0, DType.INT64)
    return ctx.apply(Fn.OR, ctx.apply(Fn.LESS, zero, number), ctx.apply(Fn.EQUAL, places, zero))


def _distinct(
    ctx: NodeContext, data: str, axis: int, order: str, is_new: str
) -> tuple[str, str, str, str]:
    """The results, from the *order* of all slices and which of them begin a group of equal ones."""
    (n,) = ctx.type_of(order).shape
    begins, count = true_places(ctx, is_new)
    group = _number_before(ctx, is_new)
    rank = ctx.emit(Computed(Inverse(), (n,), DType.INT64), [order])
    own = ctx.emit(Gather(0), [group, rank])
    first = ctx.emit(Gather(0), [order, begins])
    ends = _ends(ctx, begins, n, count)
    counts = ctx.apply(Fn.SUB, ends, begins)
    if not ctx.attr("sorted", 1):
        leader = ctx.emit(Gather(0), [first, own])
        is_first = ctx.apply(Fn.EQUAL, leader, ctx.places(n))
        first = ctx.slice(all_places(ctx, is_first), {0: Cut(0, count)})
        counts = ctx.emit(Gather(0), [counts, ctx.emit(Gather(0), [own, first])])
        own = ctx.emit(Gather(0), [_number_before(ctx, is_first), leader])
    return ctx.emit(Gather(axis), [data, first]), first, own, counts


def _number_before(ctx: NodeContext, flags: str) -> str:
    """For each place, the number of true *flags* up to it, less one."""
    (n,) = ctx.type_of(flags).shape
    ones = ctx.reshape(ctx.cast(flags, DType.INT64), (1, n, 1))
    total = ctx.reshape(ctx.emit(Computed(Prefixes(), (1, n, 1), DType.INT64), [ones]), (n,))
    return ctx.apply(Fn.SUB, total, ctx.literal(1, DType.INT64))


def _ends(ctx: NodeContext, begins: str, n: AnyExtent, count: AnyExtent) -> str:
    """Where each group ends: where the next one begins, or behind the last slice."""
    after = ctx.apply(Fn.ADD, ctx.places(count), ctx.literal(1, DType.INT64))
    total = ctx.size(count, DType.INT64)
    is_last = ctx.apply(Fn.EQUAL, after, total)
    following = ctx.emit(Gather(0), [begins, after])
    return ctx.apply(Fn.WHERE, is_last, ctx.size(n, DType.INT64), following)


OPERATORS: dict[str, Translate] = {"TopK": top_k, "Unique": unique}
