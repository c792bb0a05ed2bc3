"""Scatter at constant indices: each element of the result is from the data or from one update."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.ops import Expand, Fn, Gather, GatherElements, Shape
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]

_REDUCTIONS = {"add": Fn.ADD, "max": Fn.MAX, "min": Fn.MIN, "mul": Fn.MUL}

Places = NDArray[np.int64]


def scatter_nd(ctx: NodeContext) -> str:
    """Write parts of the tensor at index tuples, which name positions along its first axes."""
    shape, indices = ctx.shape(), _indices(ctx)
    depth = indices.shape[-1]
    outer, inner = shape[:depth], shape[depth:]
    columns = np.moveaxis(indices, -1, 0)
    places = _flat([_wrapped(c, e) for c, e in zip(columns, outer, strict=True)], outer)
    return _written(ctx, outer, np.broadcast_to(places, indices.shape[:-1]), inner)


def scatter_elements(ctx: NodeContext) -> str:
    """Write each update at its own index along ``axis``."""
    shape, indices = ctx.shape(), _indices(ctx)
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    where: list[Places] = [*np.indices(indices.shape, np.int64)]
    where[axis] = _wrapped(indices, shape[axis])
    return _written(ctx, shape, _flat(where, shape), ())


def tensor_scatter(ctx: NodeContext) -> str:
    """A cache whose rows from a computed one on, which each batch has, are replaced.

    Each row is gathered from the update or the cache.  With mode ``circular``, rows follow the last
    one at the start again.
    """
    shape, rows = ctx.shape(), ctx.shape(1)
    axis, mode = ctx.axis(ctx.attr("axis", -2), len(shape)), ctx.attr("mode", "linear")
    if mode not in ("linear", "circular"):
        raise Unsupported(f"mode={mode}", "use linear or circular")
    behind = (1,) * (len(shape) - axis - 1)
    place = ctx.reshape(ctx.places(shape[axis], len(behind)), (*(1,) * axis, shape[axis], *behind))
    if ctx.has_input(2):
        first = ctx.cast(ctx.input(2), DType.INT64)
        first = ctx.reshape(first, (shape[0], *(1,) * (len(shape) - 1)))
        place = ctx.apply(Fn.SUB, place, first)
    if mode == "circular":
        place = ctx.apply(Fn.MOD, place, ctx.size(shape[axis], DType.INT64))
    begun = ctx.apply(Fn.LESS_EQUAL, ctx.literal(0, DType.INT64), place)
    inside = ctx.apply(Fn.AND, begun, ctx.apply(Fn.LESS, place, ctx.size(rows[axis], DType.INT64)))
    found = ctx.emit(GatherElements(axis), [ctx.input(1), ctx.emit(Expand(shape), [place])])
    return ctx.apply(Fn.WHERE, inside, found, ctx.input(0))


def _indices(ctx: NodeContext) -> Places:
    return np.asarray(ctx.constant(1, "indices"), np.int64)


def _wrapped(indices: Places, extent: int) -> Places:
    """*indices* with negative ones counted from the end; refuses those out of range."""
    outside = indices[(indices < -extent) | (indices >= extent)]
    if outside.size:
        raise Unsupported(f"index {outside.flat[0]}", f"the axis has {extent} elements")
    return np.where(indices < 0, indices + extent, indices)


def _flat(where: list[Places], shape: Shape) -> Places:
    """Row-major positions in *shape* of the indices *where*, one array per axis."""
    return np.ravel_multi_index(where, shape) if where else np.zeros((), np.int64)


def _written(ctx: NodeContext, outer: Shape, places: Places, inner: Shape) -> str:
    """The data ``[*outer, *inner]`` with update number ``n`` at position ``places.flat[n]``.

    If several updates have the same position, the last one counts; reducing them is refused.
    """
    flat = places.reshape(-1)
    reduction = ctx.attr("reduction", "none")
    if reduction != "none" and reduction not in _REDUCTIONS:
        raise Unsupported(f"reduction={reduction}", f"use one of none, {', '.join(_REDUCTIONS)}")
    if reduction != "none" and len(np.unique(flat)) < len(flat):
        raise Unsupported(f"reduction={reduction}", "write to each position only once")
    if not flat.size or not all(inner):
        return ctx.input(0)
    source = np.full(outer, -1, np.int64)
    source.reshape(-1)[flat] = np.arange(len(flat))
    updates = _gathered(ctx, ctx.reshape(ctx.input(2), (len(flat), *inner)), source)
    if reduction != "none":
        updates = ctx.apply(_REDUCTIONS[reduction], ctx.input(0), updates)
    given = (source >= 0).reshape(*outer, *(1,) * len(inner))
    if given.all():
        return updates
    return ctx.apply(Fn.WHERE, ctx.literal(given, DType.BOOL), updates, ctx.input(0))


def _gathered(ctx: NodeContext, updates: str, source: Places) -> str:
    """The rows of *updates* that *source* names, or any row where it is negative."""
    shape = (*source.shape, *ctx.builder.types[updates].shape[1:])
    if np.array_equal(source.reshape(-1), np.arange(ctx.builder.types[updates].shape[0])):
        return ctx.reshape(updates, shape)
    indices = ctx.literal(np.maximum(source, 0), DType.INT64)
    return ctx.emit(Gather(0), [updates, indices])


OPERATORS: dict[str, Callable[[NodeContext], str]] = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
