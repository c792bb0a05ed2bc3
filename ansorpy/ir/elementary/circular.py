"""Sine and cosine of float32."""

from __future__ import annotations

from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.parts import FORMATS, bits, fma, polynomial
from ansorpy.ir.expr import Expr

__all__ = ["cos_single", "sin_single"]

_TWO_OVER_PI = 0.63661977236758134308
_HALF_PI_HIGH, _HALF_PI_LOW = 1.57079632679489655800, 6.12323399573676603587e-17


def sin_single(x: Expr) -> Expr:
    """Sine; the argument is reduced in float64.  Only a sum of zeros could lose the sign of -0."""
    return select(x.equal(0.0), x, _circular(x, 0))


def cos_single(x: Expr) -> Expr:
    """Cosine; the argument is reduced in float64."""
    return _circular(x, 1)


def _circular(x: Expr, quarter: int) -> Expr:
    """sin(x + quarter * pi / 2), from the quadrant of x and its remainder modulo pi / 2."""
    wide = x.astype(DType.FLOAT64)
    rounder = FORMATS[DType.FLOAT64].rounder
    shifted = fma(wide, _TWO_OVER_PI, rounder)
    n = shifted - rounder
    r = fma(n, -_HALF_PI_LOW, fma(n, -_HALF_PI_HIGH, wide)).astype(DType.FLOAT32)
    quadrant = (bits(shifted) + quarter).astype(DType.UINT32) % 4
    square = r * r
    sine = fma(polynomial(square, _SIN) * square, r, r)
    cosine = fma(square, -0.5, polynomial(square, _COS) * square * square) + 1.0
    y = select((quadrant % 2).not_equal(0), cosine, sine)
    return select(quadrant >= 2, -y, y)


_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
