"""Scatter: each element of the result is from the data or from the updates for its place.

Where the indices are constant and no element gets several updates, these are gathered; otherwise,
an algorithm applies one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Computed, Expand, Fn, Gather, GatherElements, Pad, PadMode, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of, prod_of
from ansorpy.ir.routines.scatters import (
    ScatterLast,
    ScatterMax,
    ScatterMin,
    ScatterProduct,
    Scatters,
    ScatterSum,
)

__all__ = ["OPERATORS", "apart", "scattered"]

_REDUCTIONS = {"add": Fn.ADD, "max": Fn.MAX, "min": Fn.MIN, "mul": Fn.MUL}
_ROUTINES: Mapping[str, type[Scatters]] = {
    "none": ScatterLast, "add": ScatterSum, "max": ScatterMax, "min": ScatterMin,
    "mul": ScatterProduct,
}  # fmt: skip

Places = NDArray[np.int64]


def scatter_nd(ctx: NodeContext) -> str:
    """Write parts of the tensor at index tuples, which name positions along its first axes."""
    shape, given = ctx.shape(), ctx.shape(1)
    depth = ctx.number(given[-1], "indices")
    outer, inner = shape[:depth], shape[depth:]
    reduction = _reduction(ctx)
    if _is_empty(ctx):
        return ctx.input(0)
    known = _known(ctx, outer)
    if known is not None:
        columns = np.moveaxis(known, -1, 0)
        flat = _flat([_wrapped(c, e) for c, e in zip(columns, outer, strict=True)], outer)
        flat = np.broadcast_to(flat, given[:-1])
        if reduction == "none" or _are_distinct(flat):
            return _written(ctx, outer, flat, inner, reduction)
    count, length = prod_of(given[:-1]), prod_of(outer)
    rows = (count, prod_of(inner))
    places = ctx.reshape(_flattened(ctx, outer), (count, 1))
    data = ctx.reshape(ctx.input(0), (length, rows[1]))
    result = scattered(ctx, data, places, ctx.reshape(ctx.input(2), rows), 0, reduction)
    return ctx.reshape(result, shape)


def scatter_elements(ctx: NodeContext) -> str:
    """Write each update at its own index along ``axis``."""
    shape, given = ctx.shape(), ctx.shape(1)
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    reduction = _reduction(ctx)
    if _is_empty(ctx):
        return ctx.input(0)
    known = _known(ctx, (*shape, *given))
    if known is not None:
        where: list[Places] = [*np.indices(known.shape, np.int64)]
        where[axis] = _wrapped(known, ctx.number(shape[axis], "axis"))
        flat = _flat(where, shape)
        if reduction == "none" or _are_distinct(flat):
            return _written(ctx, shape, flat, (), reduction)
    places, updates = _from_start(ctx, ctx.input(1), shape[axis]), ctx.input(2)
    beyond = tuple(
        0 if d == axis else e - g for d, (e, g) in enumerate(zip(shape, given, strict=True))
    )
    if any(beyond):
        none = (0,) * len(shape)
        places = ctx.emit(Pad(none, beyond, PadMode.CONSTANT, -1), [places])
        updates = ctx.emit(Pad(none, beyond, PadMode.CONSTANT, 0), [updates])
    return scattered(ctx, ctx.input(0), places, updates, axis, reduction)


def scattered(
    ctx: NodeContext, data: str, places: str, updates: str, axis: int, reduction: str = "none"
) -> str:
    """*data* with *updates* written at their *places* along *axis*, or combined with what is there.

    The places have the shape of the updates, or extents of 1 behind the axis.  Those outside the
    data are ignored.  Updates are applied in order, so without a reduction the last one counts.
    """
    kinds = ctx.builder.types
    shape, dtype = kinds[data].shape, kinds[data].dtype
    routine = _ROUTINES[reduction]
    wide = dtype.of_sums if routine is ScatterSum else dtype
    rows, columns = prod_of(shape[:axis]), prod_of(shape[axis + 1 :])
    count = kinds[updates].shape[axis]
    own = columns if kinds[places].shape == kinds[updates].shape else 1
    whole: Shape = (rows, shape[axis], columns)
    operands = [
        ctx.reshape(ctx.cast(data, wide), whole),
        ctx.reshape(ctx.cast(places, DType.INT64), (rows, count, own)),
        ctx.reshape(ctx.cast(updates, wide), (rows, count, columns)),
    ]
    result = ctx.emit(Computed(routine(), whole, wide), apart(ctx, operands))
    return ctx.reshape(ctx.cast(result, dtype), shape)


def apart(ctx: NodeContext, operands: Sequence[str]) -> list[str]:
    """*operands*, of which those that occur earlier are copied: an algorithm reads each once."""
    return [
        ctx.apply(Fn.MAX, value, value) if value in operands[:n] else value
        for n, value in enumerate(operands)
    ]


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


def _reduction(ctx: NodeContext) -> str:
    """How updates are combined with what is there; refuses what ONNX does not define."""
    reduction = ctx.attr("reduction", "none")
    if reduction not in _ROUTINES:
        raise Unsupported(f"reduction={reduction}", f"use one of {', '.join(_ROUTINES)}")
    if reduction != "none" and ctx.type().dtype is DType.BOOL:
        raise Unsupported(f"reduction={reduction}", "booleans can only be replaced")
    return reduction


def _is_empty(ctx: NodeContext) -> bool:
    """Whether there is nothing to write, or nothing to write to."""
    return ctx.type().size == 0 or ctx.type(2).size == 0


def _known(ctx: NodeContext, extents: Shape) -> Places | None:
    """The indices, if they are constant and *extents* are numbers."""
    array = ctx.builder.constants.get(ctx.input(1))
    return None if array is None or dims_of(extents) else np.asarray(array, np.int64)


def _are_distinct(flat: Places) -> bool:
    return len(np.unique(flat)) == flat.size


def _from_start(ctx: NodeContext, indices: str, extent: AnyExtent) -> str:
    """*indices* along an axis, negative ones counted from the end, as int64.

    An index out of range wraps around, as in a gather.
    """
    return ctx.apply(Fn.MOD, ctx.cast(indices, DType.INT64), ctx.size(extent, DType.INT64))


def _flattened(ctx: NodeContext, outer: Shape) -> str:
    """The row-major positions in *outer* of computed index tuples, ``[.., 1]``."""
    last = len(ctx.shape(1)) - 1
    flat = ctx.literal(0, DType.INT64)
    for d, extent in enumerate(outer):
        column = _from_start(ctx, ctx.slice(ctx.input(1), {last: Cut(d, 1)}), extent)
        if d:
            flat = ctx.apply(Fn.MUL, flat, ctx.size(extent, DType.INT64))
        flat = ctx.apply(Fn.ADD, flat, column) if d else column
    return flat


def _wrapped(indices: Places, extent: int) -> Places:
    """*indices* with negative ones counted from the end; refuses those out of range."""
    outside = indices[(indices < -extent) | (indices >= extent)]
    if outside.size:
        raise Unsupported(f"index {outside.flat[0]}", f"the axis has {extent} elements")
    return np.where(indices < 0, indices + extent, indices)


def _flat(where: list[Places], shape: Shape) -> Places:
    """Row-major positions in *shape* of the indices *where*, one array per axis."""
    return np.ravel_multi_index(where, shape) if where else np.zeros((), np.int64)


def _written(ctx: NodeContext, outer: Shape, places: Places, inner: Shape, reduction: str) -> str:
    """The data ``[*outer, *inner]`` with update number ``n`` at position ``places.flat[n]``.

    If several updates have the same position, the last one counts.
    """
    flat = places.reshape(-1)
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
    shape = (*source.shape, *ctx.type_of(updates).shape[1:])
    if np.array_equal(source.reshape(-1), np.arange(ctx.type_of(updates).shape[0])):
        return ctx.reshape(updates, shape)
    indices = ctx.literal(np.maximum(source, 0), DType.INT64)
    return ctx.emit(Gather(0), [updates, indices])


OPERATORS: dict[str, Translate] = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
