"""Allocate tensors, with the same pages and alignment for the tuner and the runtime."""

from __future__ import annotations

import ctypes
import math
import mmap
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ansorpy.ir.strides import ALIGNMENT_BYTES, span

__all__ = [
    "address_of", "aligned_empty", "aligned_zeros", "allocator", "arranged",
    "sized_allocator",
]  # fmt: skip

_HUGE_PAGE = 2 << 20
_TINY = 1 << 10
"""Bytes up to which a result comes from numpy: aligning it would take longer than it saves."""
_KEPT = 2
"""Unused areas that an allocator keeps: a caller that replaces its result with the next one
alternates between two."""


def aligned_empty(
    shape: Sequence[int], dtype: DTypeLike, strides: Sequence[int] | None = None
) -> NDArray[Any]:
    """Allocate an uninitialised row-major array on a 64-byte boundary.

    With *strides* (in elements), it is a view of a larger array whose other elements are unused.

    Arrays of at least one huge page (2 MiB) start on a huge-page boundary and request huge pages
    from the system, which saves TLB misses when weights are streamed.
    """
    kind, extents = np.dtype(dtype), tuple(shape)
    size = (math.prod(extents) if strides is None else span(extents, strides)) * kind.itemsize
    area, boundary = _huge(size) if size >= _HUGE_PAGE else _small(size)
    apart = None if strides is None else tuple(step * kind.itemsize for step in strides)
    # Faster than a slice, a view and a reshape; every call allocates its outputs here.
    return np.ndarray(extents, kind, area, -_start(area) % boundary, apart)


def aligned_zeros(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """Like :func:`aligned_empty`, but all elements are 0."""
    array = aligned_empty(shape, dtype)
    if array.nbytes < _HUGE_PAGE:  # larger ones come from the system, which clears them
        array.fill(0)
    return array


def allocator(shape: Sequence[int], dtype: DTypeLike) -> Callable[[], NDArray[Any]]:
    """Return a function that allocates arrays like :func:`aligned_empty` and reuses their memory.

    The system clears large areas page by page when they are first written to, which can take longer
    than computing the values written.  So the function reuses an area once its array and all views
    of it are gone, and keeps up to two unused areas.  Several threads may call it at once.
    """
    kind, extents = np.dtype(dtype), tuple(shape)
    size = math.prod(extents) * kind.itemsize
    if size < _HUGE_PAGE:
        return partial(np.empty if size <= _TINY else aligned_empty, extents, kind)
    unused: deque[mmap.mmap] = deque(maxlen=_KEPT)

    def allocate() -> NDArray[Any]:
        try:
            area = unused.pop()  # atomic, like append: no lock is needed
        except IndexError:
            area, _ = _huge(size)
        return _lent(area, unused, extents, kind)

    return allocate


def sized_allocator(dtype: DTypeLike) -> Callable[[Sequence[int]], NDArray[Any]]:
    """Return a function that allocates arrays of any shape, and reuses memory as an allocator does.

    An area is up to a quarter larger than its first array, so that arrays that grow slowly fit too.
    """
    kind = np.dtype(dtype)
    unused: deque[mmap.mmap] = deque(maxlen=_KEPT)

    def allocate(shape: Sequence[int]) -> NDArray[Any]:
        size = math.prod(shape) * kind.itemsize
        if size < _HUGE_PAGE:
            return np.empty(shape, kind) if size <= _TINY else aligned_empty(shape, kind)
        try:
            area = unused.pop()
        except IndexError:
            area = None
        if area is None or len(area) < size + _HUGE_PAGE:
            step = max(_HUGE_PAGE, 1 << (size.bit_length() - 3))
            area, _ = _huge(-(-size // step) * step)
        return _lent(area, unused, tuple(shape), kind)

    return allocate


def _lent(
    area: mmap.mmap, unused: deque[mmap.mmap], shape: tuple[int, ...], kind: np.dtype[Any]
) -> NDArray[Any]:
    """An array in *area*, which becomes unused once the array and all views of it are gone."""
    held: Any = (ctypes.c_char * len(area)).from_buffer(area)  # the base of the array and its views
    weakref.finalize(held, unused.append, area).atexit = False
    return np.ndarray(shape, kind, held, -_start(held) % _HUGE_PAGE)


def arranged(
    flat: NDArray[Any], shape: Sequence[int], strides: Sequence[int] | None
) -> NDArray[Any]:
    """View *flat* as an array of *shape*, dense or with *strides* (in elements)."""
    if strides is None:
        return flat.reshape(tuple(shape))
    apart = tuple(s * flat.itemsize for s in strides)
    return np.lib.stride_tricks.as_strided(flat, tuple(shape), apart)


def address_of(array: NDArray[Any]) -> int:
    """Address of the first element of *array*; takes a third of the time of ``ctypes.data``."""
    try:
        return _start(array)
    except (TypeError, ValueError, BufferError):  # read-only, empty, or of a custom dtype
        address: int = array.ctypes.data
        return address


def _start(area: Any) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


def _small(size: int) -> tuple[NDArray[np.uint8], int]:
    return np.empty(size + ALIGNMENT_BYTES, np.uint8), ALIGNMENT_BYTES


def _huge(size: int) -> tuple[mmap.mmap, int]:
    """Anonymous memory; its pages stay mapped while any view of the array is alive.

    Raises:
        MemoryError: There is not that much.
    """
    # Python's default, a shared mapping, would be a file in memory, which has small pages only.
    try:
        area = mmap.mmap(-1, size + _HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError(f"an array needs {size / 2**30:.1f} GiB") from None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        area.madvise(mmap.MADV_HUGEPAGE)
    return area, _HUGE_PAGE
