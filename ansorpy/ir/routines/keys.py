"""Keys: unsigned integers that are ordered as the elements of any type are.

Elements of up to 32 bits share a key with their place: the key of the element in its upper half,
the place in its lower half.  Such keys all differ, so that sorting them keeps the order of equal
elements.
"""

from __future__ import annotations

from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Const, Expr, Function

__all__ = ["LARGEST", "has_place", "key_of", "place_in"]

LARGEST = Const(2**64 - 1, DType.UINT64)
"""No key is larger."""
_HALF = 1 << 31
_LOWER = 1 << 32
_LEAST = -(1 << 63)


def has_place(dtype: DType) -> bool:
    """Whether keys of *dtype* hold places, too."""
    return dtype.bits <= 32


def key_of(x: Expr, place: Expr, *, largest: bool) -> Expr:
    """The uint64 key of *x*: smaller for what comes first, with *place* if there is room.

    The smallest elements come first or, if *largest*, the largest ones.  NaN is larger than all
    numbers, and the two zeros are equal.
    """
    if not has_place(x.dtype):
        return _of_64_bits(x, largest=largest)
    value = _of_32_bits(x)
    value = (_HALF - 1) - value if largest else value + _HALF
    return value.astype(DType.UINT64) * _LOWER + place.astype(DType.UINT64)


def place_in(key: Expr) -> Expr:
    """The place that *key* holds, as int64."""
    return (key % _LOWER).astype(DType.INT64)


def _of_32_bits(x: Expr) -> Expr:
    """An int64 from -2**31 to 2**31 - 1, ordered as *x* is."""
    if not x.dtype.is_float:
        value = x.astype(DType.INT64)
        return value - _HALF if x.dtype is DType.UINT32 else value
    wide = x.astype(DType.FLOAT32)
    bits = Call(Function.BITS, (wide,)).astype(DType.INT64)
    return select(wide.not_equal(wide), _HALF - 1, select(bits >= _HALF, _HALF - bits, bits))


def _of_64_bits(x: Expr, *, largest: bool) -> Expr:
    if x.dtype is DType.UINT64:
        return LARGEST - x if largest else x
    value = x
    if x.dtype.is_float:
        bits = Call(Function.BITS, (x,)).astype(DType.INT64)
        number = select(bits < 0, Const(_LEAST, DType.INT64) - bits, bits)
        value = select(x.not_equal(x), -_LEAST - 1, number)
    value = -1 - value if largest else value
    return value.astype(DType.UINT64) + Const(1 << 63, DType.UINT64)
