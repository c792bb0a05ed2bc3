"""Indices in definitions: broadcasting, sliding windows, guards, and the padding stage."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.ops.base import Shape
from ansorpy.graph.ops.names import Names, image_axes
from ansorpy.ir.builders import all_of, select
from ansorpy.ir.expr import Axis, Expr, ExprLike
from ansorpy.ir.extents import least
from ansorpy.ir.tensor import Tensor, compute, reduce_axis

__all__ = [
    "broadcast_index", "count_windows", "guarded", "kernel_axes", "pad_spatial", "position",
]  # fmt: skip


def broadcast_index(own: Shape, index: Sequence[Expr], full: Shape) -> tuple[Expr | int, ...]:
    """The index into an operand of shape *own* at *index* of its broadcast to *full*.

    A unit axis is read at 0 only where it is broadcast; elsewhere its index is the axis itself, so
    that an operand of the full shape is recognised as read elementwise.
    """
    skipped = len(full) - len(own)
    places = zip(own, full[skipped:], index[skipped:], strict=True)
    return tuple(i if e == f else 0 for e, f, i in places)


def count_windows(
    spatial: Shape, kernel: Shape, strides: Shape, begin: Shape, end: Shape, dilations: Shape
) -> Shape:
    """Number of windows that fit along each spatial axis; raises ``ValueError`` if none fits."""
    counts = tuple(
        (size + lo + hi - dilation * (k - 1) - 1) // stride + 1
        for size, k, stride, lo, hi, dilation in zip(
            spatial, kernel, strides, begin, end, dilations, strict=True
        )
    )
    if any(least(count) < 1 for count in counts):
        raise ValueError(f"a window of {kernel} does not fit into {spatial}")
    return counts


def position(out: Expr, stride: int, tap: ExprLike, dilation: int) -> Expr:
    """``out * stride + tap * dilation`` without multiplications by one."""
    start = out if stride == 1 else out * stride
    if isinstance(tap, int):
        return start + tap * dilation if tap else start
    return start + (tap if dilation == 1 else tap * dilation)


def guarded(
    source: Tensor, indices: Sequence[Expr], guards: Sequence[tuple[int, bool, bool]], fill: float
) -> Expr:
    """``source[indices]``, or *fill* where an index is outside.

    Args:
        guards: ``(dimension, can be negative, can reach the end)`` for each index to check.
    """
    conditions: list[Expr] = []
    for dim, low, high in guards:
        if low:
            conditions.append(indices[dim] >= 0)
        if high:
            conditions.append(indices[dim] < source.shape[dim])
    value = source[tuple(indices)]
    return select(all_of(*conditions), value, fill) if conditions else value


def kernel_axes(kernel: Shape, names: Sequence[str]) -> tuple[Axis | int, ...]:
    """A reduce axis for each tap dimension; 0 where the kernel has a single tap."""
    return tuple(
        reduce_axis(extent, name=f"k{name}") if extent > 1 else 0
        for extent, name in zip(kernel, names, strict=True)
    )


def pad_spatial(data: Tensor, begin: Shape, end: Shape, names: Names) -> Tensor:
    """*data* (channels last) with zeros around its spatial axes; *data* itself without padding."""
    if not any(begin) and not any(end):
        return data
    rank = len(begin)
    lo, hi = (0, *begin, 0), (0, *end, 0)
    shape = [b + e + a for b, e, a in zip(lo, data.shape, hi, strict=True)]
    guards = [(d, lo[d] > 0, hi[d] > 0) for d in range(1, rank + 1)]

    def body(*i: Expr) -> Expr:
        shifted = [x - b if b else x for x, b in zip(i, lo, strict=True)]
        return guarded(data, shifted, guards, 0.0)

    return compute(shape, body, name=names.fresh("pad"), names=image_axes(data.ndim))
