"""Gathers at indices, which become slices if the indices are evenly spaced constants."""

from __future__ import annotations

from itertools import pairwise

from ansorpy.arrays import Array
from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.unsupported import TooShort
from ansorpy.graph.ops import Gather, GatherElements, GatherND
from ansorpy.ir.extents import AnyExtent, least

__all__ = ["OPERATORS"]


def gather(ctx: NodeContext) -> str:
    """Gather along ``axis``; evenly spaced constant indices become a slice, which costs nothing."""
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    indices = _known_indices(ctx, shape[axis])
    chosen = None if indices is None else _range(indices, shape[axis])
    if indices is None or chosen is None:
        return ctx.emit(Gather(axis), [ctx.input(0), ctx.input(1)])
    rows = ctx.slice(ctx.input(), {axis: chosen})
    return ctx.reshape(rows, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


def gather_elements(ctx: NodeContext) -> str:
    """Read each element at its own index along ``axis``."""
    shape = ctx.shape()
    axis = ctx.axis(ctx.attr("axis", 0), len(shape))
    _known_indices(ctx, shape[axis])
    return ctx.emit(GatherElements(axis), [ctx.input(0), ctx.input(1)])


def gather_nd(ctx: NodeContext) -> str:
    """Read elements, or parts of the tensor, at index tuples."""
    batch = ctx.attr("batch_dims", 0)
    indices = ctx.builder.constants.get(ctx.input(1))
    if indices is not None:
        for n in range(indices.shape[-1]):
            _refuse_outside(indices[..., n], ctx.shape()[batch + n])
    return ctx.emit(GatherND(batch), [ctx.input(0), ctx.input(1)])


def _known_indices(ctx: NodeContext, extent: AnyExtent) -> Array | None:
    """The indices along an axis of *extent* elements, none of them outside; None if a run computes
    them."""
    indices = ctx.builder.constants.get(ctx.input(1))
    if indices is not None:
        _refuse_outside(indices, extent)
    return indices


def _refuse_outside(indices: Array, extent: AnyExtent) -> None:
    """Refuse constant indices out of range; those computed at run time wrap around."""
    outside = indices[(indices < -least(extent)) | (indices >= least(extent))]
    if outside.size:
        farthest = int(max(outside.max() + 1, -outside.min()))
        missing = extent - farthest
        raise TooShort(f"index {outside.flat[0]}", f"the axis has {extent} elements", missing)


def _range(indices: Array, extent: AnyExtent) -> Cut | None:
    """The positions that *indices* name, or None if they are not evenly spaced."""
    flat = [int(v) + extent if v < 0 else int(v) for v in indices.reshape(-1)]
    if not flat:
        return None
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if not isinstance(step, int) or not step:
        return None
    is_even = all(b - a == step for a, b in pairwise(flat))
    return Cut(flat[0], len(flat), step) if is_even else None


OPERATORS = {"Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd}
