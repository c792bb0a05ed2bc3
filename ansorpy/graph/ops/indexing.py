"""Indices in definitions: broadcasting, sliding windows, bounds, guards, and the padding stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.graph.ops.base import Shape
from ansorpy.graph.ops.names import Names, image_axes
from ansorpy.ir.builders import all_of, maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr, ExprLike
from ansorpy.ir.extents import AnyExtent, least
from ansorpy.ir.tensor import Tensor, compute, reduce_axis

__all__ = [
    "broadcast_index", "chosen", "clamped", "count_windows", "guarded", "kernel_axes",
    "pad_spatial", "position", "wrapped_index",
]  # fmt: skip


def broadcast_index(own: Shape, index: Sequence[Expr], full: Shape) -> tuple[Expr | int, ...]:
    """The index into an operand of shape *own* at *index* of its broadcast to *full*.

    A unit axis is read at 0 only where it is broadcast; elsewhere its index is the axis itself, so
    that an operand of the full shape is recognised as read elementwise.
    """
    skipped = len(full) - len(own)
    places = zip(own, full[skipped:], index[skipped:], strict=True)
    return tuple(i if e == f else 0 for e, f, i in places)


def clamped(x: Expr, low: ExprLike, high: ExprLike) -> Expr:
    """*x*, but at least *low* and at most *high*."""
    return minimum(maximum(x, low), high)


def wrapped_index(given: Expr, extent: AnyExtent) -> Expr:
    """A *given* integer as an index below *extent*; it wraps around, so that -1 is the last."""
    return given.astype(DType.INT64) % extent


def chosen(index: Expr, starts: Sequence[AnyExtent], part: Callable[[int], Expr]) -> Expr:
    """``part(n)`` for the last number ``n`` with ``starts[n] <= index``.

    The selects form a binary search, so each element evaluates few conditions and the expression
    is not deep.
    """

    def among(first: int, end: int) -> Expr:
        if end - first == 1:
            return part(first)
        middle = (first + end) // 2
        return select(index < starts[middle], among(first, middle), among(middle, end))

    return among(0, len(starts))


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
