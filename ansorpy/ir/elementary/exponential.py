"""The exponential function and the hyperbolic tangent."""

from __future__ import annotations

from ansorpy.ir.builders import select
from ansorpy.ir.elementary.parts import (
    LN2_DOUBLE,
    LN2_SINGLE,
    LOG2_E,
    clamped,
    fma,
    polynomial,
    split_integer,
)
from ansorpy.ir.expr import Call, Expr, Function

__all__ = ["exp_double", "exp_single", "tanh_double", "tanh_single"]


def exp_single(x: Expr) -> Expr:
    """e ** x: a minimax polynomial of degree 6 after reduction by multiples of ln 2.

    Masked scores of attention are far below -104, where the result is 0.  They take another number
    through the arithmetic, as an instruction whose result underflows takes a hundred cycles.
    """
    is_nothing = x < -104.0
    n, r = _reduced(select(is_nothing, 0.0, clamped(x, -104.0, 89.0)), *LN2_SINGLE)
    y = fma(polynomial(r, _EXP_SINGLE), r, 1.0)
    return select(is_nothing, 0.0, Call(Function.SCALE, (y, n)))


# Coefficients rounded to float32, then varied in the last bits to minimise the resulting error.
_EXP_SINGLE = (
    0.0013165549607947469, 0.008352093398571014, 0.04167648404836655, 0.16666702926158905,
    0.4999997615814209, 1.0,
)  # fmt: skip


def exp_double(x: Expr) -> Expr:
    """e ** x: a minimax polynomial of degree 12 after reduction by multiples of ln 2."""
    n, r = _reduced(clamped(x, -746.0, 710.0), *LN2_DOUBLE)
    tail = fma(polynomial(r, _EXP_DOUBLE) * r, r, r)
    return Call(Function.SCALE, (tail + 1.0, n))


_EXP_DOUBLE = (
    2.0826515696204756259e-9, 2.5112144121286249045e-8, 2.7557582862155427269e-7,
    2.7557234560027523962e-6, 0.000024801586924529250767, 0.00019841269896679471894,
    0.0013888888889117298823, 0.0083333333333169178027, 0.041666666666666089063,
    0.16666666666666683569, 0.50000000000000000444,
)  # fmt: skip


def _reduced(x: Expr, high: float, low: float) -> tuple[Expr, Expr]:
    """``n, r`` with ``x == n * ln 2 + r``."""
    n = split_integer(x, LOG2_E)
    return n, fma(n, -low, fma(n, -high, x))


def tanh_single(x: Expr) -> Expr:
    """Hyperbolic tangent: a rational approximation on |x| < 7.9 (as in Eigen)."""
    inside = clamped(x, -7.90531110763549805, 7.90531110763549805)
    square = inside * inside
    y = inside * polynomial(square, _TANH_ABOVE) / polynomial(square, _TANH_BELOW)
    return select(abs(x) < 0.0004, x, y)


_TANH_ABOVE = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_BELOW = (
    1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03,
)  # fmt: skip


def tanh_double(x: Expr) -> Expr:
    """Hyperbolic tangent: rational near 0, ``1 - 2 / (exp(2|x|) + 1)`` beyond (Cephes)."""
    square = x * x
    ratio = polynomial(square, _TANH_DOUBLE_ABOVE) / polynomial(square, _TANH_DOUBLE_BELOW)
    near = fma(x * ratio, square, x)
    size = abs(x)
    far = 1.0 - 2.0 / (exp_double(size * 2.0) + 1.0)
    return select(size < 0.625, near, select(x < 0.0, -far, far))


_TANH_DOUBLE_ABOVE = (
    -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3,
)  # fmt: skip
_TANH_DOUBLE_BELOW = (
    1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3,
)  # fmt: skip
