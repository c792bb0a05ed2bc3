"""Arrays that end at an inaccessible page, for the run that checks a candidate.

Reading or writing past the end causes a segmentation fault, which identifies the faulty candidate.
The slack before the array (a page is larger than most alignments) is filled with a pattern, and
:meth:`GuardedArray.is_intact` detects writes to it.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array, Masks
from ansorpy.codegen.llvm.objects.memory import arranged
from ansorpy.errors import AnsorpyError
from ansorpy.ir.strides import span

__all__ = ["GuardedArray", "gaps"]

_PAGE = mmap.PAGESIZE
_PROT_NONE = 0
_PROT_READ = 1
_PATTERN = 0xA5
_GAP = 0xFF
_CHECKED_BYTES = 1 << 16

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class GuardedArray:
    """``array`` has *shape* and *dtype* and ends at a guard page, up to *align* bytes before it.

    Another guard page precedes it.  Gaps between elements that are *strides* apart hold a pattern
    that reads as NaN.  The memory is released when ``array`` and this object are dropped.
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        *,
        align: int | None = None,
        strides: Sequence[int] | None = None,
    ) -> None:
        kind = np.dtype(dtype)
        count = math.prod(shape) if strides is None else span(shape, strides)
        size = count * kind.itemsize
        pages = max(1, -(-size // _PAGE))
        self._map = mmap.mmap(-1, (pages + 2) * _PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        room = pages * _PAGE
        unit = align or kind.itemsize
        start = _PAGE + (room - size) // unit * unit
        whole = np.frombuffer(self._map, dtype=np.uint8)
        self._before = whole[max(_PAGE, start - _CHECKED_BYTES) : start]
        self._after = whole[start + size : _PAGE + room]
        inside = whole[start : start + size]
        self.array: Array = arranged(inside.view(kind), shape, strides)
        self._between = gaps(inside, self.array) if strides is not None else None
        self._inside = inside
        self._mark()
        self._pages = (base + _PAGE, pages * _PAGE)
        _protect(base, _PAGE, _PROT_NONE)
        _protect(base + (pages + 1) * _PAGE, _PAGE, _PROT_NONE)

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    def is_intact(self) -> bool:
        """Return False if anything outside the array but within its pages was overwritten."""
        if self._between is not None and not np.all(self._inside[self._between] == _GAP):
            return False
        return bool((self._before == _PATTERN).all() and (self._after == _PATTERN).all())

    def seal(self) -> None:
        """Make the array read-only from now on: a kernel that writes to its input is killed."""
        _protect(*self._pages, _PROT_READ)

    def poison(self) -> None:
        """Fill with NaN (floats) or an implausible pattern (integers); restore the slack."""
        if self.array.dtype.kind in "fV":
            self.array.fill(np.nan)
        else:
            self._inside.fill(_PATTERN)
        self._mark()

    def _mark(self) -> None:
        """Write the patterns around and between the elements."""
        self._before[:] = _PATTERN
        self._after[:] = _PATTERN
        if self._between is not None:
            self._inside[self._between] = _GAP


def gaps(inside: npt.NDArray[np.uint8], array: Array) -> Masks:
    """Mask of the bytes of *inside* that belong to no element of *array*."""
    used = np.zeros(inside.size, dtype=np.bool_)
    at = np.zeros(1, dtype=np.int64)
    for extent, stride in zip(array.shape, array.strides, strict=True):
        at = (at[:, None] + stride * np.arange(extent)).reshape(-1)
    for byte in range(array.itemsize):
        used[at + byte] = True
    return ~used


def _protect(address: int, size: int, protection: int) -> None:
    if _LIBC.mprotect(address, size, protection) != 0:
        raise AnsorpyError("this system refuses to protect memory (mprotect failed)")
