"""Conversions between floats and the codes of narrow floats, in integer operations."""

from __future__ import annotations

import struct

from ansorpy.errors import UsageError
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, const
from ansorpy.ir.narrow import Format, Narrow

__all__ = ["ROUNDINGS", "decoded", "encoded", "wrapped"]

ROUNDINGS = ("up", "down", "nearest")
"""How the powers of two of float8e8m0 are chosen."""

_WORD = DType.UINT32
_FRACTION = 23
_BIAS = 127
_INFINITY = 0x7F80_0000
_NAN = 0x7FC0_0000


def decoded(code: Expr, kind: Narrow) -> Expr:
    """The float32 number that *code* (uint8) stands for; exact."""
    wide = code.astype(_WORD)
    form = kind.format
    return _real(_power(wide) if form is None else _number(wide, form, kind.bits))


def encoded(x: Expr, kind: Narrow, *, saturate: bool = True, rounding: str = "up") -> Expr:
    """The code (uint8) of the float *x*, rounded once to nearest, halves to even.

    Args:
        saturate: Whether what is too large becomes the largest finite number.
        rounding: How float8e8m0, which has neither signs nor fractions, is rounded.
    """
    form = kind.format
    if form is None:
        return _exponent(_bits(x.astype(DType.FLOAT32)), saturate, rounding).astype(DType.UINT8)
    return _code(_bits(_narrowed(x)), form, kind.bits, saturate).astype(DType.UINT8)


def wrapped(x: Expr, kind: Narrow) -> Expr:
    """The number *x* as an integer of a narrow type, which keeps its low bits."""
    low = x.astype(kind.held)
    away = 8 - kind.bits
    return low << away >> away


def _bits(x: Expr) -> Expr:
    return Call(Function.BITS, (x,))


def _real(bits: Expr) -> Expr:
    return Call(Function.FROM_BITS, (bits,))


def _word_of(x: float) -> int:
    found: int = struct.unpack("<I", struct.pack("<f", x))[0]
    return found


def _number(code: Expr, form: Format, bits: int) -> Expr:
    """The bits of the float32 number with the given code."""
    sign = 1 << (bits - 1)
    size = code & (sign - 1)
    normal = (size << (_FRACTION - form.fraction)) + ((_BIAS - form.bias) << _FRACTION)
    least = 2.0 ** (1 - form.bias - form.fraction)
    small = _bits(size.astype(DType.FLOAT32) * const(least, DType.FLOAT32))
    found = select(size < (1 << form.fraction), small, normal)
    nan = const(_NAN, _WORD)
    if not form.has_negative_zero:
        found = select(code.equal(form.nan), nan, found)
    elif form.has_infinity:
        found = select(size > form.beyond, nan, found)
        found = select(size.equal(form.beyond), const(_INFINITY, _WORD), found)
    elif form.nan & (sign - 1):
        found = select(size > form.most, nan, found)
    return found | ((code & sign) << (32 - bits))


def _power(code: Expr) -> Expr:
    """The bits of two to the power of *code* - 127; the last code is NaN."""
    found = select(code.equal(0), const(1 << (_FRACTION - 1), _WORD), code << _FRACTION)
    return select(code.equal(0xFF), const(_NAN, _WORD), found)


def _narrowed(x: Expr) -> Expr:
    """*x* as a float32 that rounds to the same narrow float: a float64 is rounded to odd.

    That is rounding towards zero, with the last bit set if the result is inexact.
    """
    if x.dtype is not DType.FLOAT64:
        return x.astype(DType.FLOAT32)
    near = _bits(x.astype(DType.FLOAT32))  # in bits, float32 even where floats are computed wider
    back = _real(near).astype(DType.FLOAT64)
    beyond = Call(Function.ABS, (back,)) > Call(Function.ABS, (x,))
    inexact = back.not_equal(x) & x.equal(x)
    return _real((near - beyond.astype(_WORD)) | inexact.astype(_WORD))


def _code(bits: Expr, form: Format, width: int, saturate: bool) -> Expr:
    """The code of the float32 number with the given *bits*."""
    sign, size = bits >> 31, bits & 0x7FFF_FFFF
    cut = _FRACTION - form.fraction
    odd = (size >> cut) & 1
    offset = (_BIAS - form.bias) << form.fraction
    normal = ((size + odd + ((1 << (cut - 1)) - 1)) >> cut) - offset
    # Adding a number whose last place is the narrow type's least step rounds to such steps.
    magic = 2.0 ** (1 - form.bias - form.fraction + _FRACTION)
    small = _bits(_real(size) + const(magic, DType.FLOAT32)) - _word_of(magic)
    code = select(size < ((_BIAS + 1 - form.bias) << _FRACTION), small, normal)
    top = const(form.most if saturate else form.beyond, _WORD)
    code = select(code > form.most, top, code)
    signed = code | (sign << (width - 1))
    if not form.has_negative_zero:
        signed = select(code.equal(0), code, signed)
    nan: Expr = const(form.nan, _WORD)
    if form.has_negative_zero:
        nan = nan ^ (sign << (width - 1))
    return select(size > _INFINITY, nan, signed)


def _exponent(bits: Expr, saturate: bool, rounding: str) -> Expr:
    """The code of a power of two near the magnitude of the float32 number with the given *bits*.

    Raises:
        UsageError: There is no such *rounding*.
    """
    exponent = (bits >> _FRACTION) & 0xFF
    fraction = bits & ((1 << _FRACTION) - 1)
    half = 1 << (_FRACTION - 1)
    match rounding:
        case "nearest":
            more = (fraction > half) | (fraction.equal(half) & (exponent > 0))
        case "up":
            more = fraction > 0
        case "down":
            return exponent
        case _:
            raise UsageError(
                f"there is no rounding {rounding!r}", hint=f"choose one of {', '.join(ROUNDINGS)}"
            )
    last = 0xFE if saturate else 0xFF
    return select(more & (exponent < last), exponent + 1, exponent)
