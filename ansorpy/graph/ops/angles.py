"""Inverse trigonometric and hyperbolic functions to float32's precision, from built-in functions.

Near zero, where a difference would cancel, they use polynomials with the coefficients of the Cephes
library (S. Moshier, 1989).  Errors are a few units in the last place.  Results for 16-bit
floats are computed in float32 and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps

from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "polynomial", "sinh", "widely",
]  # fmt: skip

_ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
_ASIN = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)
_SINH = (2.03721912945e-4, 8.33028376239e-3, 1.66667160211e-1)
_ASINH = (2.0122003309e-2, -4.2699340972e-2, 7.4847586088e-2, -1.6666288134e-1)
_ACOSH = (1.7596881071e-3, -7.5272886713e-3, 2.6454905019e-2, -1.1784741703e-1, 1.4142135263)
_ATANH = (1.81740078349e-1, 8.24370301058e-2, 1.46691431730e-1, 1.99782164500e-1, 3.33337300303e-1)

_FAR = 1e4
"""Above this, the 1 in ``sqrt(x * x + 1)`` is negligible, and ``x * x`` may overflow."""


def widely(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """*function* computed in at least float32, whatever the type of its argument and result."""

    @wraps(function)
    def widened(x: Expr, *params: float) -> Expr:
        return function(b.widened(x), *params).astype(x.dtype)

    return widened


@widely
def atan(x: Expr) -> Expr:
    """The arctangent, between -pi / 2 and pi / 2."""
    size = b.abs(x)
    large, middle = size > math.tan(3 * math.pi / 8), size > math.tan(math.pi / 8)
    t = b.select(large, -1.0 / size, b.select(middle, (size - 1.0) / (size + 1.0), size))
    known = b.select(large, math.pi / 2, b.select(middle, math.pi / 4, 0.0))
    return _signed(x, known + _odd(t, _ATAN))


@widely
def asin(x: Expr) -> Expr:
    """The arcsine, between -pi / 2 and pi / 2; NaN for ``|x| > 1``."""
    return _signed(x, b.select(b.abs(x) > 0.5, math.pi / 2 - 2.0 * _half(x), _odd(b.abs(x), _ASIN)))


@widely
def acos(x: Expr) -> Expr:
    """The arccosine, between 0 and pi; NaN for ``|x| > 1``."""
    near = 2.0 * _half(x)
    return b.select(x > 0.5, near, b.select(x < -0.5, math.pi - near, math.pi / 2 - _odd(x, _ASIN)))


@widely
def sinh(x: Expr) -> Expr:
    """``(exp(x) - exp(-x)) / 2``."""
    raised = b.exp(b.abs(x) * 0.5)
    far = 0.5 * raised * raised - 0.5 / (raised * raised)
    return b.select(b.abs(x) > 1.0, _signed(x, far), _odd(x, _SINH))


@widely
def cosh(x: Expr) -> Expr:
    """``(exp(x) + exp(-x)) / 2``."""
    raised = b.exp(b.abs(x) * 0.5)
    return 0.5 * raised * raised + 0.5 / (raised * raised)


@widely
def asinh(x: Expr) -> Expr:
    """``log(x + sqrt(x * x + 1))``."""
    size = b.abs(x)
    near = b.minimum(size, _FAR)
    far = b.log(size) + math.log(2)
    away = b.select(size > _FAR, far, b.log(near + b.sqrt(near * near + 1.0)))
    return b.select(size > 0.5, _signed(x, away), _odd(x, _ASINH))


@widely
def acosh(x: Expr) -> Expr:
    """``log(x + sqrt(x * x - 1))``; NaN below 1."""
    above = x - 1.0
    near = b.minimum(x, _FAR)
    away = b.log(near + b.sqrt((near - 1.0) * (near + 1.0)))
    away = b.select(x > _FAR, b.log(x) + math.log(2), away)
    return b.select(above < 0.5, b.sqrt(above) * polynomial(above, _ACOSH), away)


@widely
def atanh(x: Expr) -> Expr:
    """``log((1 + x) / (1 - x)) / 2``; NaN for ``|x| > 1``."""
    return b.select(b.abs(x) < 0.5, _odd(x, _ATANH), 0.5 * b.log((1.0 + x) / (1.0 - x)))


def _half(x: Expr) -> Expr:
    """``asin(sqrt((1 - |x|) / 2))``."""
    return _odd(b.sqrt(0.5 * (1.0 - b.abs(x))), _ASIN)


def _odd(x: Expr, coefficients: Sequence[float]) -> Expr:
    """``x + x ** 3 * p(x ** 2)``."""
    square = x * x
    return x + x * square * polynomial(square, coefficients)


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """A polynomial of *x*; the first coefficient is that of the highest power."""
    total = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        total = total * x + c
    return total


def _signed(x: Expr, size: Expr) -> Expr:
    return b.select(x < 0, -size, size)
