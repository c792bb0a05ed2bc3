"""The natural logarithm."""

from __future__ import annotations

from math import inf, nan

from ansorpy.ir.builders import select
from ansorpy.ir.elementary.parts import LN2_DOUBLE, LN2_SINGLE, fma, mantissa, polynomial
from ansorpy.ir.expr import Expr

__all__ = ["log_double", "log_single"]


def log_single(x: Expr) -> Expr:
    """Natural logarithm, -inf at 0, NaN below: a polynomial of the mantissa (Cephes logf)."""
    m, n = _normal_mantissa(x, 2.0**-126, 23)
    r = m - 1.0
    square = r * r
    y = polynomial(r, _LOG_SINGLE) * r * square
    high, low = LN2_SINGLE
    y = fma(square, -0.5, fma(n, low, y))
    return _limits(x, fma(n, high, r + y))


_LOG_SINGLE = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip


def log_double(x: Expr) -> Expr:
    """Natural logarithm, -inf at 0, NaN below: a series in ``r / (2 + r)`` (fdlibm)."""
    m, n = _normal_mantissa(x, 2.0**-1022, 52)
    r = m - 1.0
    s = r / (r + 2.0)
    square = s * s
    half = r * r * 0.5
    y = fma(polynomial(square, _LOG_DOUBLE), square, half)
    high, low = LN2_DOUBLE
    y = fma(s, y, n * low)
    return _limits(x, fma(n, high, r - (half - y)))


_LOG_DOUBLE = (
    1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
    2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
    6.666666666666735130e-01,
)  # fmt: skip


def _normal_mantissa(x: Expr, smallest: float, lift: int) -> tuple[Expr, Expr]:
    """Mantissa and exponent; denormal numbers are multiplied by ``2**lift`` first."""
    tiny = x < smallest
    return mantissa(select(tiny, x * 2.0**lift, x), tiny, lift)


def _limits(x: Expr, y: Expr) -> Expr:
    y = select(x.equal(inf), x, y)
    y = select(x.equal(0.0), -inf, y)
    return select(x >= 0.0, y, nan)
