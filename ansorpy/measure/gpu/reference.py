"""The reference of an output in GPU memory, with which candidates' outputs are compared there."""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Array
from ansorpy.codegen.cuda.device.checks import NearBounds
from ansorpy.codegen.cuda.device.protocol import Device
from ansorpy.measure.check.compare import Limits, limits
from ansorpy.measure.gpu.guard import GuardedDeviceArray

__all__ = ["DeviceReference"]


class DeviceReference:
    """The reference *want* of the output in *region*, with the same gaps between its elements.

    The rule is that of :func:`ansorpy.measure.check.compare.compare`, whose limits the CPU
    calculates once for each tolerance.
    """

    def __init__(self, device: Device, region: GuardedDeviceArray, want: Array) -> None:
        self.want = want
        self._device = device
        self._region = region
        self._copy = self._like_region(_with_plain_nans(want))
        self._limits: dict[tuple[float, bool, float], tuple[Limits, GuardedDeviceArray | None]] = {}

    def error(self, allowed: float, *, by_block: bool, least: float) -> float | None:
        """The error of what *region* holds now; None if it is not within the limits."""
        key = allowed, by_block, least
        if key not in self._limits:
            made = limits(self.want, allowed, by_block=by_block, least=least)
            self._limits[key] = made, self._rows(made)
        made, rows = self._limits[key]
        row = made.row_elements if self._region.strides is None else 1
        found = self._device.difference(
            self._region.address,
            self._copy.address,
            self._region.dtype,
            self._region.elements,
            None if rows is None else NearBounds(rows.address, row),
        )
        error = made.error(found.largest)
        return None if found.wrong or error > made.allowed else error

    def _rows(self, made: Limits) -> GuardedDeviceArray | None:
        """The limits of the rows, or of each element if there are gaps between elements."""
        if made.rows is None:
            return None
        if self._region.strides is not None:
            each = np.repeat(made.rows, made.row_elements).reshape(self._region.shape)
            return self._like_region(each)
        rows = GuardedDeviceArray(self._device, made.rows.shape, made.rows.dtype)
        rows.write(made.rows)
        return rows

    def _like_region(self, values: Array) -> GuardedDeviceArray:
        """*values* in GPU memory, with the strides of the region."""
        region = self._region
        made = GuardedDeviceArray(self._device, region.shape, values.dtype, region.strides)
        made.write(values)
        return made


def _with_plain_nans(want: Array) -> Array:
    """*want* without NaNs whose bits are all ones, which mark gaps between elements."""
    if want.dtype.kind in "iub" or not np.isnan(want).any():
        return want
    return np.where(np.isnan(want), want.dtype.type("nan"), want)
