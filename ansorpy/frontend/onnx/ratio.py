"""Quotients of extents by numbers, which shape arithmetic in floats rounds to extents again."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from ansorpy.ir.extents import Extent

__all__ = ["Ratio", "ratio_of"]


@dataclass(frozen=True)
class Ratio:
    """``above / below``, where *below* is a positive number."""

    above: Extent
    below: int = 1

    def plus(self, other: Ratio) -> Ratio:
        """The sum."""
        below = lcm(self.below, other.below)
        return _reduced(
            self.above * (below // self.below) + other.above * (below // other.below), below
        )

    def times(self, other: Ratio) -> Ratio:
        """The product."""
        return _reduced(self.above * other.above, self.below * other.below)

    def over(self, other: Ratio) -> Ratio | None:
        """The quotient; None unless *other* is a number other than 0."""
        if not isinstance(other.above, int) or not other.above:
            return None
        sign = 1 if other.above > 0 else -1
        return self.times(Ratio(sign * other.below, abs(other.above)))

    def floor(self) -> Extent:
        """The greatest extent that is not above."""
        return self.above // self.below

    def ceil(self) -> Extent:
        """The least extent that is not below."""
        return -((-self.above) // self.below)


def _reduced(above: Extent, below: int) -> Ratio:
    if isinstance(above, int):
        return ratio_of(Fraction(above, below))
    whole = above // below
    return Ratio(whole) if whole * below == above else Ratio(above, below)


def ratio_of(number: float | Fraction | Extent) -> Ratio:
    """A finite number, or an extent, as a :class:`Ratio`."""
    if isinstance(number, int | float | Fraction):
        exact = Fraction(number)
        return Ratio(exact.numerator, exact.denominator)
    return Ratio(number)
