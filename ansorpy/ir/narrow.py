"""Element types that only arrays have; programs convert them in registers.

Floats of 8 bits and fewer are read as their codes, integers of fewer than 8 bits as int8 or uint8.
Types of 4 and 2 bits are packed, the first element in the lowest bits of a byte, as ONNX does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ansorpy.ir.dtypes import DType

if TYPE_CHECKING:
    from ansorpy.ir.extents import AnyExtent

__all__ = ["ElementType", "Format", "Narrow", "element_type", "packed", "unpacked"]


@dataclass(frozen=True)
class Format:
    """How a float is coded: sign, exponent and fraction, from the highest bit.

    Attributes:
        fraction: Bits of the fraction.
        bias: What is taken off the exponent; exponent 0 means a number without a leading 1.
        most: The code of the largest finite number.
        nan: The code of NaN; for a type without NaN, what it becomes (a zero, as in ml_dtypes).
        beyond: The code of larger numbers, unless they saturate.
        has_negative_zero: Whether the code of -0 means that; else it is that of NaN.
    """

    fraction: int
    bias: int
    most: int
    nan: int
    beyond: int
    has_negative_zero: bool = True

    @property
    def has_infinity(self) -> bool:
        return self.beyond != self.nan and self.beyond != self.most


class Narrow(Enum):
    """An element type of arrays; the value is the name that ml_dtypes uses."""

    FLOAT8E4M3FN = "float8_e4m3fn"
    FLOAT8E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8E5M2 = "float8_e5m2"
    FLOAT8E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8E8M0 = "float8_e8m0fnu"
    FLOAT4E2M1 = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"

    @property
    def bits(self) -> int:
        """Width of one stored element."""
        info: Any = ml_dtypes.finfo if self.is_float else ml_dtypes.iinfo
        return int(info(self.numpy).bits)

    @property
    def in_a_byte(self) -> int:
        """How many elements a byte holds."""
        return 8 // self.bits

    @property
    def is_float(self) -> bool:
        return self.value.startswith("float")

    @property
    def held(self) -> DType:
        """The type of one element in a register: its code, or its value if it is an integer."""
        return DType.INT8 if self in (Narrow.INT4, Narrow.INT2) else DType.UINT8

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest value of an integer type."""
        top = 1 << self.bits
        return (-top // 2, top // 2 - 1) if self.held.is_signed else (0, top - 1)

    @property
    def format(self) -> Format | None:
        """The format of a float with sign and fraction; None for other types."""
        return _FORMATS.get(self)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, self.value))
        return found

    def bytes_of(self, elements: AnyExtent) -> AnyExtent:
        """The bytes of an array of so many elements."""
        return (elements + (self.in_a_byte - 1)) // self.in_a_byte

    def __repr__(self) -> str:
        return self.value


_FORMATS = {
    Narrow.FLOAT8E4M3FN: Format(3, 7, 0x7E, 0x7F, 0x7F),
    Narrow.FLOAT8E4M3FNUZ: Format(3, 8, 0x7F, 0x80, 0x80, has_negative_zero=False),
    Narrow.FLOAT8E5M2: Format(2, 15, 0x7B, 0x7E, 0x7C),
    Narrow.FLOAT8E5M2FNUZ: Format(2, 16, 0x7F, 0x80, 0x80, has_negative_zero=False),
    Narrow.FLOAT4E2M1: Format(1, 1, 0x7, 0x8, 0x7),
}

ElementType: TypeAlias = DType | Narrow
"""The type of an array's elements."""


def element_type(name: str) -> ElementType:
    """The element type that numpy and ml_dtypes call *name*; ``ValueError`` if there is none."""
    return Narrow(name) if name in _NAMES else DType(name)


_NAMES = {kind.value for kind in Narrow}


def packed(array: npt.NDArray[np.generic], kind: Narrow) -> npt.NDArray[np.uint8]:
    """The bytes of *array*, whose elements ml_dtypes keeps one a byte, as they are stored."""
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    count, bits = kind.in_a_byte, kind.bits
    if count == 1:
        return codes
    whole = np.zeros(kind.bytes_of(codes.size) * count, np.uint8)
    whole[: codes.size] = codes & ((1 << bits) - 1)
    parts = whole.reshape(-1, count) << (np.arange(count, dtype=np.uint8) * np.uint8(bits))
    return np.asarray(np.bitwise_or.reduce(parts, axis=1), np.uint8)


def unpacked(stored: npt.NDArray[np.uint8], kind: Narrow, size: int) -> npt.NDArray[np.generic]:
    """The first *size* elements in the bytes *stored*, one a byte, of the type of ml_dtypes."""
    bits = kind.bits
    places = np.arange(kind.in_a_byte, dtype=np.uint8) * np.uint8(bits)
    codes = (stored[:, None] >> places & np.uint8((1 << bits) - 1)).reshape(-1)[:size]
    return np.ascontiguousarray(codes).view(kind.numpy)
