"""Building blocks shared by approximations: polynomials, splitting a float, powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, as_expr

__all__ = [
    "FORMATS", "LN2_DOUBLE", "LN2_SINGLE", "LOG2_E", "bits", "clamped", "fma", "from_bits",
    "mantissa", "polynomial", "split_integer",
]  # fmt: skip

LOG2_E = 1.44269504088896341
# The high parts have few enough bits that their products with an exponent are exact.
LN2_SINGLE = 0.693359375, -2.12194440e-4
LN2_DOUBLE = 6.93147180369123816490e-01, 1.90821492927058770002e-10


@dataclass(frozen=True)
class Format:
    """A binary float format: fraction bits, exponent bias, and the type that holds its bits."""

    fraction: int
    bias: int
    bits: DType

    @property
    def rounder(self) -> float:
        """A constant that, added to a float, leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.fraction


FORMATS = {
    DType.FLOAT32: Format(23, 127, DType.UINT32),
    DType.FLOAT64: Format(52, 1023, DType.UINT64),
}


def fma(a: Expr, b: Expr | float, c: Expr | float) -> Expr:
    """``a * b + c``."""
    kind = a.dtype
    return Call(Function.FMA, (a, as_expr(b, kind), as_expr(c, kind)))


def polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Evaluate a polynomial by Horner's scheme; *coefficients* start with the highest power."""
    total = as_expr(coefficients[0], x.dtype)
    for coefficient in coefficients[1:]:
        total = fma(total, x, coefficient)
    return total


def bits(x: Expr) -> Expr:
    """The bits of a float as an unsigned integer."""
    return Call(Function.BITS, (x,))


def from_bits(x: Expr) -> Expr:
    """The float with the bits of an unsigned integer."""
    return Call(Function.FROM_BITS, (x,))


def clamped(x: Expr, low: float, high: float) -> Expr:
    """*x* clamped to ``low .. high``; a NaN stays a NaN."""
    return maximum(minimum(x, high), low)


def split_integer(x: Expr, factor: float) -> Expr:
    """The integer nearest to ``x * factor``, as a float."""
    rounder = FORMATS[x.dtype].rounder
    return fma(x, factor, rounder) - rounder


def mantissa(x: Expr, lifted: Expr | None = None, lift: int = 0) -> tuple[Expr, Expr]:
    """``m, n`` with ``x == m * 2**(n + lift)`` and m in ``sqrt(1/2) .. sqrt(2)``, for normal x > 0.

    *lift* applies only where *lifted* holds.
    """
    form = FORMATS[x.dtype]
    step = 1 << form.fraction
    root = _ROOT[x.dtype]  # the bits of sqrt(1/2)
    moved = bits(x) + (form.bias * step - root)
    m = from_bits(moved % step + root)
    # Put the exponent into the low bits of a float between 2**fraction and twice that.
    biased = from_bits(moved // step + (form.fraction + form.bias) * step)
    bias = float(step + form.bias)
    if lifted is None:
        return m, biased - bias
    return m, biased - select(lifted, as_expr(bias + lift, x.dtype), bias)


_ROOT = {DType.FLOAT32: 0x3F3504F3, DType.FLOAT64: 0x3FE6A09E667F3BCD}
