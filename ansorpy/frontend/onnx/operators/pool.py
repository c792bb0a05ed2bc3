"""Pools; an average is the sum of a window times the reciprocal of its number of elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, widely
from ansorpy.frontend.onnx.operators.windows import (
    Windows,
    padded,
    require_known_pads,
    windows_of,
)
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Pool, PoolPlaces, Reduce, ReduceKind, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, most, prod_of

__all__ = ["OPERATORS", "average_pool"]


def _pool(ctx: NodeContext, kind: ReduceKind, value: str | None = None) -> tuple[str, Windows]:
    """*value* (by default, the operand) reduced over windows, and the windows."""
    spatial = ctx.shape()[2:]
    if not 1 <= len(spatial) <= 3:
        raise Unsupported(f"input shape {ctx.shape()}", "one to three spatial axes are supported")
    w = windows_of(ctx, spatial, ctx.ints("kernel_shape", ()))
    fill = float(kind.identity(ctx.type().dtype))
    data, inside = padded(ctx, value or ctx.operand(), w, fill)
    op = Pool(kind, w.kernel, w.strides, inside.pads_begin, inside.pads_end, w.dilations)
    return ctx.emit(op, [data]), w


def max_pool(ctx: NodeContext) -> tuple[str, ...]:
    """The maximum of each window, ignoring padding, and where it was found."""
    value, w = _pool(ctx, ReduceKind.MAX)
    if not ctx.is_output_used(1):
        return (value,)
    require_known_pads(ctx, w)
    pool = Pool(ReduceKind.MAX, w.kernel, w.strides, w.pads_begin, w.pads_end, w.dilations)
    places = ctx.emit(PoolPlaces(pool), [ctx.input(), value])
    return value, _by_columns(ctx, places) if ctx.attr("storage_order", 0) else places


def _by_columns(ctx: NodeContext, places: str) -> str:
    """Row-major *places* counted column by column within each image: its first axis is fastest."""
    sizes = [ctx.size(extent, DType.INT64) for extent in reversed(ctx.shape()[2:])]
    at = []
    for size in sizes:
        at.append(ctx.apply(Fn.MOD, places, size))
        places = ctx.apply(Fn.DIV, places, size)
    for size, place in zip(sizes, at, strict=True):
        places = ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, places, size), place)
    return places


def average_pool(ctx: NodeContext) -> str:
    """The mean of each window, which includes declared padding with ``count_include_pad``."""
    total, w = _pool(ctx, ReduceKind.SUM)
    include = bool(ctx.attr("count_include_pad", 0))
    out = ctx.type_of(total).shape[2:]
    spatial = ctx.shape()[2:]
    if dims_of(spatial):
        return ctx.apply(Fn.DIV, total, _counted(ctx, spatial, out, w, include))
    counts = _counts(spatial, out, w, include)
    if (counts == counts.flat[0]).all():
        counts = counts.reshape(-1)[:1].reshape((1,) * len(out))
    return ctx.apply(Fn.MUL, total, ctx.literal(1.0 / counts))


def _counts(spatial: Shape, out: Shape, w: Windows, include_pad: bool) -> NDArray[np.float64]:
    """Number of elements in each window's mean: the outer product of the counts along the axes."""
    result = np.ones(())
    for d, (size, count) in enumerate(zip(spatial, out, strict=True)):
        low, high = (-w.pads_begin[d], size + w.declared_end[d]) if include_pad else (0, size)
        starts = np.arange(count) * w.strides[d] - w.pads_begin[d]
        taps = starts[:, None] + np.arange(w.kernel[d]) * w.dilations[d]
        result = np.multiply.outer(result, ((taps >= low) & (taps < high)).sum(axis=1))
    return result


def _counted(ctx: NodeContext, spatial: Shape, out: Shape, w: Windows, include_pad: bool) -> str:
    """:func:`_counts` for extents that depend on sizes, computed at run time where they vary."""
    dtype = ctx.type().dtype
    result = ctx.literal(np.ones((1,) * (len(out) + 2)), dtype)
    for d, (size, count) in enumerate(zip(spatial, out, strict=True)):
        low, high = (-w.pads_begin[d], size + w.declared_end[d]) if include_pad else (0, size)
        first, reach = -w.pads_begin[d], w.dilations[d] * (w.kernel[d] - 1) + 1
        last = (count - 1) * w.strides[d] + first + reach
        if most(low - first) <= 0 and most(last - high) <= 0:
            taps = ctx.literal(float(w.kernel[d]), dtype)
        elif w.dilations[d] == 1:
            taps = _overlap(
                ctx, Cut(first, count, w.strides[d]), reach, low, high, len(out) - d - 1
            )
        else:
            raise ctx.undecided("dilations", [size])
        result = ctx.apply(Fn.MUL, result, ctx.cast(taps, dtype))
    return result


def _overlap(
    ctx: NodeContext, starts: Cut, reach: int, low: AnyExtent, high: AnyExtent, behind: int
) -> str:
    """How many of the *reach* elements from each of *starts* on are from *low* to below *high*."""

    def number(extent: AnyExtent) -> str:
        return ctx.size(extent, DType.INT64)

    place = ctx.apply(Fn.MUL, ctx.places(starts.size, behind), number(starts.step))
    place = ctx.apply(Fn.ADD, place, number(starts.start))
    end = ctx.apply(Fn.MIN, ctx.apply(Fn.ADD, place, number(reach)), number(high))
    return ctx.apply(Fn.SUB, end, ctx.apply(Fn.MAX, place, number(low)))


def _global(ctx: NodeContext, kind: ReduceKind, value: str | None = None) -> str:
    axes = tuple(range(2, len(ctx.shape())))
    return ctx.emit(Reduce(kind, axes, keepdims=True), [value or ctx.operand()])


def lp_pool(ctx: NodeContext) -> str:
    """The p-norm of each window."""
    return _root(ctx, _pool(ctx, ReduceKind.SUM, _power(ctx))[0])


def global_lp_pool(ctx: NodeContext) -> str:
    """The p-norm over all spatial axes, kept with extent one."""
    return _root(ctx, _global(ctx, ReduceKind.SUM, _power(ctx)))


def _exponent(ctx: NodeContext) -> float:
    p = float(ctx.attr("p", 2))
    if p <= 0:
        raise Unsupported(f"p={p:g}", "it must be positive")
    return p


def _power(ctx: NodeContext) -> str:
    """``|x| ** p``."""
    x, p = ctx.input(), _exponent(ctx)
    if p == 2:
        return ctx.apply(Fn.MUL, x, x)
    size = ctx.apply(Fn.ABS, x)
    return size if p == 1 else ctx.apply(Fn.POW, size, ctx.literal(p))


def _root(ctx: NodeContext, total: str) -> str:
    """``total ** (1 / p)``."""
    p = _exponent(ctx)
    if p == 2:
        return ctx.apply(Fn.SQRT, total)
    return total if p == 1 else ctx.apply(Fn.POW, total, ctx.literal(1 / p))


def global_average_pool(ctx: NodeContext) -> str:
    """The mean over all spatial axes, kept with extent one."""
    total = _global(ctx, ReduceKind.SUM)
    return ctx.divided(total, prod_of(ctx.shape()[2:]))


def global_max_pool(ctx: NodeContext) -> str:
    """The maximum over all spatial axes, kept with extent one."""
    return _global(ctx, ReduceKind.MAX)


OPERATORS: dict[str, Translate] = {
    "AveragePool": widely(average_pool),
    "GlobalAveragePool": widely(global_average_pool),
    "GlobalLpPool": widely(global_lp_pool),
    "GlobalMaxPool": global_max_pool,
    "LpPool": widely(lp_pool),
    "MaxPool": max_pool,
}
