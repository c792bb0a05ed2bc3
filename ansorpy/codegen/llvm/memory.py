"""The one allocator of tensors: tuner and runtime must see the same pages and alignment."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["ALIGNMENT", "aligned_empty"]

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector register."""
_HUGE_PAGE = 2 << 20


def aligned_empty(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """An uninitialised row-major array on a 64-byte boundary; large ones in huge pages.

    Arrays of at least one huge page (2 MiB) start on its boundary and ask the system for huge
    pages, which saves TLB misses when weights stream.
    """
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    raw = _huge(size) if size >= _HUGE_PAGE else _small(size)
    return raw[:size].view(kind).reshape(tuple(shape))


def _small(size: int) -> NDArray[np.uint8]:
    raw = np.empty(size + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    return raw[skip : skip + size]


def _huge(size: int) -> NDArray[np.uint8]:
    """Anonymous memory: the pages stay mapped while a view of the array lives."""
    area = mmap.mmap(-1, size + _HUGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        area.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(area, np.uint8)
    skip = -raw.ctypes.data % _HUGE_PAGE
    return raw[skip : skip + size]
