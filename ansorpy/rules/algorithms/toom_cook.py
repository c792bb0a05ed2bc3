"""Minimal filtering matrices: F(m, r) gives m outputs of an r-tap filter from m + r - 1 products.

Source: Toom-Cook interpolation transposed (Winograd 1980; Lavin & Gray, "Fast Algorithms for
Convolutional Neural Networks", 2016; Barabasz et al., "Error Analysis and Improving the Accuracy
of Winograd Convolution", 2020, for the choice of points).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import sqrt
from typing import TypeAlias

__all__ = ["Matrices", "Matrix", "Row", "matrices"]

Number: TypeAlias = Fraction | float
"""Exact numbers in the matrices that are returned, rounded ones where options are compared."""
Row: TypeAlias = tuple[Number, ...]
Matrix: TypeAlias = tuple[Row, ...]

CANDIDATES = tuple(
    Fraction(*p)
    for p in ((0, 1), (1, 1), (-1, 1), (1, 2), (-1, 2), (2, 1), (-2, 1), (1, 4), (-1, 4))
)  # fmt: skip
"""Interpolation points to try; products with powers of two are exact."""


@dataclass(frozen=True)
class Matrices:
    """``y = a (g w * b x)``: *m* outputs ``y[i] = sum(w[k] x[i + k])`` over *r* taps.

    Args:
        a: ``[m, m + r - 1]``, the output transform.
        b: ``[m + r - 1, m + r - 1]``, the input transform.
        g: ``[m + r - 1, r]``, the tap transform.
        points: The finite interpolation points; the last point, infinity, is not listed.
        growth: Expected ratio of an output's rounding error to that of the direct sum, for
            independent inputs and taps of variance one.
    """

    m: int
    r: int
    a: Matrix
    b: Matrix
    g: Matrix
    points: Row
    growth: float


@lru_cache(maxsize=256)
def matrices(m: int, r: int) -> Matrices:
    """F(m, r) at the points with the smallest error growth.

    Raises:
        ValueError: *m* or *r* is below 1, or more points are needed than there are candidates.
    """
    needed = m + r - 2
    if m < 1 or r < 1 or needed > len(CANDIDATES):
        raise ValueError(f"F({m}, {r}) cannot be made from {len(CANDIDATES)} points")
    chosen = combinations(CANDIDATES[1:], needed - 1) if needed else [()]
    options = ((CANDIDATES[0], *rest) if needed else () for rest in chosen)
    points = min(options, key=lambda row: _rounded_growth(m, r, row))
    a, b, g = _transforms(m, r, points, Fraction(1))
    return Matrices(m, r, a, b, g, points, _growth(a, b, g))


def _rounded_growth(m: int, r: int, points: Row) -> float:
    """The growth computed in floating point, which takes a tenth of the time of fractions."""
    return _growth(*_transforms(m, r, [float(p) for p in points], 1.0))


def _transforms(
    m: int, r: int, points: Sequence[Number], one: Number
) -> tuple[Matrix, Matrix, Matrix]:
    """The matrices ``a``, ``b`` and ``g`` at *points*, in the arithmetic of *one*."""
    zero = one - one
    a = [(*(p**i for p in points), one if i == m - 1 else zero) for i in range(m)]
    b: list[Row] = []
    g: list[Row] = []
    for point in points:
        others = [other for other in points if other != point]
        scale = one
        for other in others:
            scale *= point - other
        b.append((*_product(others, one), zero))
        g.append(tuple(point**k / scale for k in range(r)))
    b.append(_product(points, one))
    g.append(tuple(one if k == r - 1 else zero for k in range(r)))
    return tuple(a), tuple(b), tuple(g)


def _product(roots: Sequence[Number], one: Number) -> Row:
    """Coefficients of the polynomial with these roots, lowest power first."""
    found, zero = [one], one - one
    for root in roots:
        pairs = zip([zero, *found], [*found, zero], strict=True)
        found = [high - root * low for high, low in pairs]
    return tuple(found)


def _growth(a: Matrix, b: Matrix, g: Matrix) -> float:
    """Root of the sum of the products' error variances in the worst output, divided by sqrt(r)."""
    products = [_square(x) * _square(w) for x, w in zip(b, g, strict=True)]
    worst = max(sum(float(c) ** 2 * p for c, p in zip(row, products, strict=True)) for row in a)
    return sqrt(worst / len(g[0]))


def _square(row: Row) -> float:
    return float(sum(x * x for x in row))
