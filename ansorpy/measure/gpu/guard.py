"""Arrays in GPU memory between two guard areas that reveal out-of-bounds accesses.

Pages of GPU memory cannot be protected, so the guards hold a pattern that reads as NaN: writes to
them are found by inspection, and reads from them spoil the result.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Array
from ansorpy.codegen.cuda.device.protocol import Device
from ansorpy.codegen.llvm.objects.memory import arranged
from ansorpy.errors import DeviceLost
from ansorpy.ir.strides import span
from ansorpy.measure.check.guard import gaps

__all__ = ["GuardedDeviceArray", "intact"]


_GUARD_BYTES = 4096
"""Size of the guard on each side; a multiple of every alignment."""
_NAN = 0xFF
"""Every byte of a NaN, in all floating-point types."""
_ODD = 0xA5
"""Every byte of an integer that is unlikely to be a correct result."""


class GuardedDeviceArray:
    """An array of *shape* on *device*, dense or with elements *strides* apart.

    ``elements`` counts those in the gaps, too.
    The memory is released when this object is dropped.
    """

    def __init__(
        self,
        device: Device,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        strides: Sequence[int] | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.strides = None if strides is None else tuple(strides)
        count = math.prod(self.shape) if strides is None else span(self.shape, strides)
        self.elements = count
        self.nbytes = count * self.dtype.itemsize
        self._device = device
        self._whole = self.nbytes + 2 * _GUARD_BYTES
        self._base = self._memory()
        self._kept: int | None = None
        self.address = self._base + _GUARD_BYTES
        self.poison()

    def poison(self) -> None:
        """Fill with NaN (floats) or a pattern (dense integers), and restore the guards."""
        self._device.fill(self._base, _NAN, self._whole)
        if self.dtype.kind not in "fV" and self.strides is None and self.nbytes:
            self._device.fill(self.address, _ODD, self.nbytes)

    def write(self, values: Array) -> None:
        """Set all elements; gaps between them are filled with the guard pattern."""
        flat = np.full(self.nbytes, _NAN, np.uint8)
        arranged(flat.view(self.dtype), self.shape, self.strides)[...] = values
        self._device.upload(self.address, flat)

    def keep(self) -> None:
        """Copy the contents of the array and its guards to separate memory."""
        if self._kept is None:
            self._kept = self._memory()
        self._device.copy(self._kept, self._base, self._whole)

    def is_kept(self) -> bool:
        """Whether the array and its guards still hold what :meth:`keep` copied."""
        assert self._kept is not None
        return self._device.equal(self._base, self._kept, self._whole)

    def _memory(self) -> int:
        """Allocate memory for the array and its guards, freed when this object is dropped."""
        address = self._device.allocate(self._whole)
        weakref.finalize(self, _release, self._device, address).atexit = False
        return address

    @property
    def guards(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The guards before and after the array, each as an address and a number of bytes."""
        return (self._base, _GUARD_BYTES), (self.address + self.nbytes, _GUARD_BYTES)

    def read(self) -> tuple[Array, bool]:
        """Return the elements, and whether everything around and between them is unchanged."""
        whole = np.empty(self._whole, np.uint8)
        self._device.download(self._base, whole)
        inside = whole[_GUARD_BYTES : _GUARD_BYTES + self.nbytes]
        array = arranged(inside.view(self.dtype), self.shape, self.strides)
        before, after = whole[:_GUARD_BYTES], whole[_GUARD_BYTES + self.nbytes :]
        intact = bool((before == _NAN).all() and (after == _NAN).all())
        if self.strides is not None:
            intact = intact and bool((inside[gaps(inside, array)] == _NAN).all())
        return array, intact


def intact(device: Device, regions: Sequence[GuardedDeviceArray]) -> list[bool]:
    """For each of *regions*, whether nothing wrote to its guards; checked on the GPU."""
    found = device.filled([guard for region in regions for guard in region.guards], _NAN)
    return [before and after for before, after in zip(found[::2], found[1::2], strict=True)]


def _release(device: Device, address: int) -> None:
    try:
        device.release(address)
    except DeviceLost:
        return  # the process is about to end, which frees the memory
