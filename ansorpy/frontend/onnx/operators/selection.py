"""Operators that sort, and those whose results' sizes depend on data."""

from __future__ import annotations

from collections.abc import Callable


import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported
from ansorpy.graph.ops import (
    Computed,
    Concat,
    Fn,
    Gather,
    GatherElements,
    Reduce,
    ReduceOp,
    Shape,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, extreme, least, most, prod_of
from ansorpy.ir.routines.places import Inverse, TruePlaces
from ansorpy.ir.routines.prefix import Prefixes
from ansorpy.ir.routines.rows import RowOrder
from ansorpy.ir.routines.suppression import Suppression
from ansorpy.ir.routines.top import TopPlaces
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS"]


def top_k(ctx: NodeContext) -> tuple[str, str]:
    """The largest or smallest elements along an axis, in order, and their positions.

    Among equal elements, the first comes before the others; NaN is above all numbers.
    """
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", -1), len(shape))
    (count,) = ctx.extents(1, "K") if ctx.opset >= 10 else (ctx.attr("k", 0),)
    extent = shape[axis]
    if least(count) < 0 or ctx.is_less(extent, count):
        raise Unsupported(f"K={count}", f"the axis has {extent} elements")
    last = (*(d for d in range(len(shape)) if d != axis), axis)
    rows = tuple(shape[d] for d in last[:-1])
    flat = ctx.reshape(ctx.transpose(ctx.input(), last), (prod_of(rows), extent))
    routine = TopPlaces(largest=bool(ctx.attr("largest", 1)))
    found = ctx.emit(Computed(routine, (prod_of(rows), count), DType.INT64), [flat])
    back = tuple(int(d) for d in np.argsort(last))
    places = ctx.transpose(ctx.reshape(found, (*rows, count)), back)
    return ctx.emit(GatherElements(axis), [ctx.input(), places]), places


def non_zero(ctx: NodeContext) -> str:
    """The places of the elements other than zero: a row for each axis."""
    shape = ctx.shape()
    if prod_of(shape) == 0:
        return ctx.literal(np.zeros((len(shape), 0)), DType.INT64)
    is_bool = ctx.type().dtype is DType.BOOL
    flags = ctx.input() if is_bool else ctx.apply(Fn.NOT, _is_zero(ctx))
    places, count = _true_places(ctx, ctx.reshape(flags, (prod_of(shape),)))
    rows, inner = [], prod_of(shape)
    for extent in shape:
        inner = inner // extent if most(extent) > 0 else 1
        row = ctx.apply(Fn.DIV, places, ctx.size(inner, DType.INT64))
        row = ctx.apply(Fn.MOD, row, ctx.size(extent, DType.INT64))
        rows.append(ctx.reshape(row, (1, count)))
    if not rows:
        return ctx.literal(np.zeros((0, 1)), DType.INT64)
    return ctx.concat(rows, 0)


def _is_zero(ctx: NodeContext) -> str:
    return ctx.apply(Fn.EQUAL, ctx.input(), ctx.literal(0))


def compress(ctx: NodeContext) -> str:
    """The slices along an axis, or the elements, where a condition holds."""
    shape, axis = ctx.shape(), ctx.attr("axis", None)
    data = ctx.input()
    if axis is None:
        data, place = ctx.reshape(data, (prod_of(shape),)), 0
    else:
        place = ctx.axis(axis, len(shape))
    extent = ctx.builder.types[data].shape[place]
    (given,) = ctx.shape(1)
    flags = ctx.slice(ctx.input(1), {0: Cut(0, extreme(SizeOp.MIN, given, extent))})
    places, _ = _true_places(ctx, flags)
    return ctx.emit(Gather(place), [data, places])


def _true_places(ctx: NodeContext, flags: str) -> tuple[str, AnyExtent]:
    """The places of the true elements of *flags*, which has one axis, and their number."""
    (n,) = ctx.builder.types[flags].shape
    if n == 0:
        return ctx.literal(np.zeros(0), DType.INT64), 0
    places = ctx.emit(Computed(TruePlaces(), (n,), DType.INT64), [flags])
    ones = ctx.cast(flags, DType.INT64)
    name = f"{ctx.node.output[0]}.count"
    total = ctx.builder.emit(Reduce(ReduceOp.SUM, (0,), False), [ones], name)
    count = ctx.builder.counted(total, n)
    return ctx.slice(places, {0: Cut(0, count)}), count


def non_max_suppression(ctx: NodeContext) -> str:
    """The boxes that are kept: rows of batch, class and box, by falling score in each class."""
    batch, classes, n = ctx.shape(1)
    limit = _most_kept(ctx, n)
    given = [
        ctx.reshape(ctx.input(k), (1,)) if ctx.has_input(k) else ctx.literal([default], dtype)
        for k, default, dtype in (
            (2, 0, DType.INT64), (3, 0.0, DType.FLOAT32), (4, 0.0, DType.FLOAT32)
        )
    ]  # fmt: skip
    if any(extent == 0 for extent in (batch, classes, n, limit)):
        return ctx.literal(np.zeros((0, 3)), DType.INT64)
    routine = Suppression(bool(ctx.attr("center_point_box", 0)), ctx.has_input(4))
    kept = ctx.emit(
        Computed(routine, (batch, classes, limit), DType.INT64),
        [ctx.input(0), ctx.input(1), *given],
    )
    flat = ctx.reshape(kept, (batch * classes * limit,))
    flags = ctx.apply(Fn.LESS_EQUAL, ctx.literal(0, DType.INT64), flat)
    places, count = _true_places(ctx, flags)
    row = ctx.apply(Fn.DIV, places, ctx.size(limit, DType.INT64))
    columns = [
        ctx.apply(Fn.DIV, row, ctx.size(classes, DType.INT64)),
        ctx.apply(Fn.MOD, row, ctx.size(classes, DType.INT64)),
        ctx.emit(Gather(0), [flat, places]),
    ]
    return ctx.concat([ctx.reshape(column, (count, 1)) for column in columns], 1)


def _most_kept(ctx: NodeContext, boxes: AnyExtent) -> AnyExtent:
    """How many boxes of a class are kept at most; all may be, if only a run knows."""
    if not ctx.has_input(2):
        return 0
    known = ctx.builder.constants.get(ctx.input(2))
    if known is None:
        return boxes
    return extreme(SizeOp.MIN, max(int(np.asarray(known).reshape(-1)[0]), 0), boxes)


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
    n, columns = ctx.builder.types[table].shape
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
    number = ctx.emit(Reduce(ReduceOp.SUM, (1,), False), [differ])
    zero = ctx.literal(0, DType.INT64)
    return ctx.apply(Fn.OR, ctx.apply(Fn.LESS, zero, number), ctx.apply(Fn.EQUAL, places, zero))


def _distinct(
    ctx: NodeContext, data: str, axis: int, order: str, is_new: str
) -> tuple[str, str, str, str]:
    """The results, from the *order* of all slices and which of them begin a group of equal ones."""
    (n,) = ctx.builder.types[order].shape
    begins, count = _true_places(ctx, is_new)
    group = _number_before(ctx, is_new)
    rank = ctx.emit(Computed(Inverse(), (n,), DType.INT64), [order])
    own = ctx.emit(Gather(0), [group, rank])
    first = ctx.emit(Gather(0), [order, begins])
    ends = _ends(ctx, begins, n, count)
    counts = ctx.apply(Fn.SUB, ends, begins)
    if not ctx.attr("sorted", 1):
        leader = ctx.emit(Gather(0), [first, own])
        is_first = ctx.apply(Fn.EQUAL, leader, ctx.places(n))
        places = ctx.emit(Computed(TruePlaces(), (n,), DType.INT64), [is_first])
        first = ctx.slice(places, {0: Cut(0, count)})
        counts = ctx.emit(Gather(0), [counts, ctx.emit(Gather(0), [own, first])])
        own = ctx.emit(Gather(0), [_number_before(ctx, is_first), leader])
    return ctx.emit(Gather(axis), [data, first]), first, own, counts


def _number_before(ctx: NodeContext, flags: str) -> str:
    """For each place, the number of true *flags* up to it, less one."""
    (n,) = ctx.builder.types[flags].shape
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


OPERATORS: dict[str, Callable[[NodeContext], str | tuple[str, ...]]] = {
    "Compress": compress,
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "TopK": top_k,
    "Unique": unique,
}
