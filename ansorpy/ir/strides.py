"""Strides of a tensor that is part of a larger one.

Strides count elements between neighbours along each dimension.  They keep row-major order: a
dimension's stride is at least the span of the dimensions after it, so no two elements coincide.

>>> dense_strides((2, 3, 4))
(12, 4, 1)
>>> span((2, 3, 4), (60, 20, 1))
104
>>> reshaped((2, 3, 4), (60, 20, 1), (6, 2, 2))
(20, 2, 1)
>>> reshaped((2, 3, 4), (60, 20, 1), (2, 12)) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ansorpy.ir.extents import AnyExtent, Extent

__all__ = [
    "ALIGNMENT_BYTES", "Strides", "dense_strides", "normalised", "padded", "reshaped", "span",
]  # fmt: skip

Strides: TypeAlias = "tuple[AnyExtent, ...]"

ALIGNMENT_BYTES = 64
"""Where tensors begin in memory: the size of a cache line, and of the widest vector register."""


def padded(size_bytes: AnyExtent) -> AnyExtent:
    """The bytes that a tensor of *size_bytes* occupies in memory that others share."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def dense_strides(shape: Sequence[Extent]) -> Strides:
    """Row-major strides of *shape*, in elements."""
    strides: list[Extent] = []
    step: Extent = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def span(shape: Sequence[Extent], strides: Sequence[Extent]) -> AnyExtent:
    """Number of elements from the first to the last, both included."""
    if 0 in shape:
        return 0
    total: Extent = 1
    for extent, stride in zip(shape, strides, strict=True):
        total = total + (extent - 1) * stride
    return total


def normalised(shape: Sequence[Extent], strides: Sequence[Extent]) -> Strides:
    """*strides*, with the dense value for dimensions of extent 1, whose strides have no effect."""
    found: list[Extent] = []
    step: Extent = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        found.append(step if extent == 1 else stride)
        step = found[-1] * extent
    return tuple(reversed(found))


def reshaped(
    shape: Sequence[Extent], strides: Sequence[Extent], to: Sequence[Extent]
) -> Strides | None:
    """Strides of the same elements in the same order under the shape *to*; None if impossible."""
    runs = _runs(shape, strides)
    found: list[Extent] = []
    extent, stride = runs.pop() if runs else (1, 1)
    for wanted in reversed(to):
        if wanted == 1:
            found.append(stride)
            continue
        while extent == 1 and runs:
            extent, stride = runs.pop()
        if extent % wanted != 0:
            return None
        found.append(stride)
        extent, stride = extent // wanted, stride * wanted
    return normalised(to, tuple(reversed(found)))


def _runs(shape: Sequence[Extent], strides: Sequence[Extent]) -> list[tuple[Extent, Extent]]:
    """(extent, stride) of each maximal run of dimensions that one stride can step through."""
    runs: list[tuple[Extent, Extent]] = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if runs and runs[-1][1] == extent * stride:
            runs[-1] = (runs[-1][0] * extent, stride)
        else:
            runs.append((extent, stride))
    return runs
