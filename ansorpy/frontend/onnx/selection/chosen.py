"""Places of elements that hold, and slices at such places."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.graph.constants import constant_values
from ansorpy.graph.ops import Computed, Fn, Gather, Reshape, TensorType
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, extreme, most, prod_of
from ansorpy.ir.routines.places import TruePlaces
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS", "all_places", "true_places"]


def non_zero(ctx: NodeContext) -> str:
    """The places of the elements other than zero: a row for each axis."""
    shape = ctx.shape()
    if prod_of(shape) == 0:
        return ctx.literal(np.zeros((len(shape), 0)), DType.INT64)
    is_bool = ctx.type().dtype is DType.BOOL
    flags = ctx.input() if is_bool else ctx.apply(Fn.NOT, _is_zero(ctx))
    places, count = true_places(ctx, ctx.reshape(flags, (prod_of(shape),)))
    rows, inner = [], prod_of(shape)
    for extent in shape:
        inner = inner // extent if most(extent) > 0 else 1
        row = ctx.apply(Fn.DIV, places, ctx.size(inner, DType.INT64))
        row = ctx.apply(Fn.MOD, row, ctx.size(extent, DType.INT64))
        rows.append(ctx.reshape(row, (1, count)))
    if not rows:  # of one number: no place has an axis, but there may be one
        kind = TensorType((0, count), DType.INT64)
        return ctx.builder.add_empty(ctx.node.output[0], kind)
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
    extent = ctx.type_of(data).shape[place]
    (given,) = ctx.shape(1)
    flags = ctx.slice(ctx.input(1), {0: Cut(0, extreme(SizeOp.MIN, given, extent))})
    places, _ = true_places(ctx, flags)
    return ctx.emit(Gather(place), [data, places])


def true_places(ctx: NodeContext, flags: str) -> tuple[str, AnyExtent]:
    """The places of the true elements of *flags*, which has one axis, and their number."""
    (n,) = ctx.type_of(flags).shape
    if n == 0:
        return ctx.literal(np.zeros(0), DType.INT64), 0
    places = all_places(ctx, flags)
    last = ctx.slice(places, {0: Cut(n, 1)})
    total = ctx.builder.emit(Reshape(()), [last], f"{ctx.node.output[0]}.count")
    count = _counted(ctx, total, n)
    return ctx.slice(places, {0: Cut(0, count)}), count


def _counted(ctx: NodeContext, total: str, capacity: AnyExtent) -> AnyExtent:
    """The extent that *total* tells; a number if it follows from constants alone."""
    graph = ctx.builder.part([total])
    if graph.inputs:
        return ctx.builder.counted(total, capacity)
    (number,) = constant_values(graph)
    return int(number.item())


def all_places(ctx: NodeContext, flags: str) -> str:
    """The places of the true elements, zeros behind them, and last their number."""
    (n,) = ctx.type_of(flags).shape
    return ctx.emit(Computed(TruePlaces(), (n + 1,), DType.INT64), [flags])


OPERATORS = {"Compress": compress, "NonZero": non_zero}
