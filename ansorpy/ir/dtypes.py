"""Element types of tensors and scalar expressions."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from functools import cache
from operator import index
from typing import Any, SupportsFloat, SupportsIndex, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["DType", "as_dtype", "python_number"]


class DType(Enum):
    """An element type; the value is the name numpy and ONNX use."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    UINT64 = "uint64"
    UINT32 = "uint32"
    UINT16 = "uint16"
    UINT8 = "uint8"
    BOOL = "bool"

    # Members are keys of tables that code generation asks all the time; Enum hashes their names.
    __hash__ = object.__hash__

    @property
    def bits(self) -> int:
        """Width of one stored element in bits (a bool is stored as one byte)."""
        return _BITS[self]

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return self.bits // 8

    @property
    def lane_bits(self) -> int:
        """Width of a vector lane for values of this type; floats are computed in at least 32."""
        return max(32, self.bits) if self.is_float else self.bits

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self in _FLOATS

    @property
    def is_half(self) -> bool:
        """Whether it is a floating-point type of 16 bits."""
        return self is DType.FLOAT16 or self is DType.BFLOAT16

    @property
    def is_int(self) -> bool:
        """Whether it is an integer type."""
        return self is not DType.BOOL and self not in _FLOATS

    @property
    def is_signed(self) -> bool:
        """Whether it has negative values."""
        return self not in _UNSIGNED

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest value of an integer type or of bool."""
        return _LIMITS[self]

    def holds(self, value: float) -> bool:
        """True if *value* is an integer that this type can represent (0 or 1 for bool)."""
        low, high = self.limits
        return low <= value <= high and value % 1 == 0

    def wrapped(self, number: int) -> int:
        """The number of this integer type with the low bits of *number*."""
        low, high = self.limits
        return (number - low) % (high - low + 1) + low

    @property
    def epsilon(self) -> float:
        """The step from 1 to the next number of this floating-point type."""
        return float(ml_dtypes.finfo(self.numpy).eps)  # type: ignore[no-untyped-call]

    @property
    def normal(self) -> tuple[float, float]:
        """The least and the largest positive normal number of this floating-point type."""
        found = ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]
        return float(found.smallest_normal), float(found.max)

    @property
    def of_floats(self) -> DType:
        """The intermediate type when floats are converted to this integer type, which keeps its
        low bits."""
        return _OF_FLOATS.get(self, self)

    @property
    def of_sums(self) -> DType:
        """The type in which sums of values of this type are computed: float32 for 16-bit floats."""
        return _OF_SUMS.get(self, self)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The type of numpy's arrays; bfloat16 is that of ``ml_dtypes``."""
        found: np.dtype[np.generic] = np.dtype(
            ml_dtypes.bfloat16 if self is DType.BFLOAT16 else self.value
        )
        return found

    def passes_float32(self, wanted: DType) -> bool:
        """True if rounding to float32 first never changes what the 16-bit float *wanted* gets."""
        if self.is_int and wanted is DType.FLOAT16:
            return True  # integers too large for float32 become infinity in float16
        return self.bits <= 16 or self is DType.FLOAT32

    def rounded(self, x: npt.ArrayLike) -> npt.NDArray[Any]:
        """Numbers rounded once to the nearest values of this floating-point type."""
        values = np.asarray(x)
        with np.errstate(over="ignore"):
            if self is DType.BFLOAT16 and not as_dtype(values.dtype).passes_float32(self):
                values = _to_odd(values)  # because ml_dtypes rounds to float32 first
            return values.astype(self.numpy)

    def __repr__(self) -> str:
        return self.value


def _to_odd(x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Round to odd as float32: towards zero, with the last bit set if the result is inexact.

    Rounding the result again to a narrower type gives the same as rounding *x* once.
    """
    exact = x.astype(np.longdouble)
    near = np.asarray(exact.astype(np.float32))
    bits = near.view(np.uint32) - (np.abs(near) > np.abs(exact))
    return np.asarray(bits | (near != exact)).view(np.float32)


_FLOATS = frozenset({DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16})
_UNSIGNED = frozenset({DType.UINT64, DType.UINT32, DType.UINT16, DType.UINT8, DType.BOOL})
_BITS = {dtype: dtype.numpy.itemsize * 8 for dtype in DType}
_LIMITS = {DType.BOOL: (0, 1)} | {
    dtype: (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed else (0, (1 << bits) - 1)
    for dtype, bits in _BITS.items()
    if dtype.is_int
}
_OF_FLOATS = {
    DType.INT8: DType.INT32, DType.INT16: DType.INT32, DType.UINT8: DType.INT32,
    DType.UINT16: DType.INT32, DType.UINT32: DType.INT64,
}  # fmt: skip
_OF_SUMS = {DType.FLOAT16: DType.FLOAT32, DType.BFLOAT16: DType.FLOAT32}


def as_dtype(value: DType | str | np.dtype[np.generic] | type) -> DType:
    """Return the :class:`DType` for *value*; raise ``ValueError`` if there is none."""
    return value if isinstance(value, DType) else _named(value)


@cache
def _named(value: object) -> DType:
    name: object = value
    if not isinstance(value, str | None):  # numpy takes None for float64
        with suppress(TypeError):
            name = np.dtype(cast(Any, value)).name
    found = next((dtype for dtype in DType if dtype.value == name), None)
    if found is None:
        known = ", ".join(dtype.value for dtype in DType)
        raise ValueError(f"there is no element type {name!r}; there are {known}")
    return found


def python_number(value: object) -> int | float:
    """The Python number that equals *value*, such as a scalar of numpy.

    Raises:
        TypeError: *value* is no number.
    """
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, SupportsIndex):
        with suppress(TypeError):  # arrays and floats of numpy have the method, too
            return index(value)
    if isinstance(value, SupportsFloat):
        with suppress(TypeError):
            return float(value)
    raise TypeError(f"{value!r} is neither an expression nor a number")
