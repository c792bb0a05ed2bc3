"""Powers: products for small constant exponents, logarithm and exponential for all others."""

from __future__ import annotations

from math import inf, nan

from ansorpy.ir.builders import floor, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.parts import (
    FORMATS,
    LOG2_E,
    bits,
    clamped,
    fma,
    from_bits,
    mantissa,
    polynomial,
)
from ansorpy.ir.expr import Const, Expr

__all__ = ["constant_power", "power_single"]


def constant_power(x: Expr, exponent: Expr) -> Expr | None:
    """``x ** exponent`` as products; None unless *exponent* is a constant that allows it.

    Exponents are up to 3, or up to 63 of integers, which products do not round.
    """
    if not isinstance(exponent, Const):
        return None
    if exponent.value == -1 and x.dtype.is_float:
        return 1.0 / x
    most = 63 if x.dtype.is_int else 3
    return _product(x, int(exponent.value)) if exponent.value in range(1, most + 1) else None


def _product(x: Expr, count: int) -> Expr:
    """*x* times itself, *count* factors in all, by repeated squaring."""
    if count == 1:
        return x
    half = _product(x, count // 2)
    return half * half * x if count % 2 else half * half


def power_single(x: Expr, y: Expr) -> Expr:
    """``x ** y`` with C's special cases: logarithm and exponential in float64."""
    magnitude = abs(x)
    exponent = y.astype(DType.FLOAT64) * _log2(magnitude.astype(DType.FLOAT64))
    return _cases(x, y, magnitude, _exp2(exponent).astype(DType.FLOAT32))


def _log2(x: Expr) -> Expr:
    """Binary logarithm of a float32 x >= 0, accurate to about 48 bits; -inf at 0."""
    m, n = mantissa(x)
    s = (m - 1.0) / (m + 1.0)
    series = polynomial(s * s, [2 / k for k in range(17, 0, -2)])
    y = fma(s * series, LOG2_E, n)
    y = select(x.equal(0.0), -inf, y)
    return select(x < inf, y, x)


def _exp2(t: Expr) -> Expr:
    """2.0 ** t, clamped to the range of a float32 result."""
    form = FORMATS[t.dtype]
    t = clamped(t, -160.0, 130.0)
    shifted = t + form.rounder
    r = (t - (shifted - form.rounder)) * 0.69314718055994530942
    # The low bits of *shifted* are the exponent; shifting drops the rest.
    power = from_bits((bits(shifted) + form.bias) * (1 << form.fraction))
    return polynomial(r, _EXP_SERIES) * power


_EXP_SERIES = (
    1 / 39916800, 1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6,
    1 / 2, 1.0, 1.0,
)  # fmt: skip


def _cases(x: Expr, y: Expr, magnitude: Expr, result: Expr) -> Expr:
    """*result* with the sign and the special cases that C99 defines for ``pow``."""
    whole = floor(y).equal(y)
    half = y * 0.5
    odd = whole & floor(half).not_equal(half)
    negative = bits(x) >= 1 << 31  # from the bits, as zeros have a sign too
    result = select(odd & negative, -result, result)
    fraction_of_negative = (x < 0.0) & (magnitude < inf) & floor(y).not_equal(y)
    result = select(fraction_of_negative, nan, result)
    result = select(x.not_equal(x) | y.not_equal(y), nan, result)
    unit_minus = x.equal(-1.0) & abs(y).equal(inf)
    return select(x.equal(1.0) | y.equal(0.0) | unit_minus, 1.0, result)
