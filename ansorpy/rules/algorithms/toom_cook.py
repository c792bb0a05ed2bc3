"""Minimal filtering matrices: F(m, r) gives m outputs of an r-tap filter from m + r - 1 products.

Source: Toom-Cook interpolation transposed (Winograd 1980; Lavin & Gray, "Fast Algorithms for
Convolutional Neural Networks", 2016; Barabasz et al., "Error Analysis and Improving the Accuracy
of Winograd Convolution", 2020, for the choice of points).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import sqrt

__all__ = ["Matrices", "Matrix", "Row", "matrices"]

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]

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
    return min((_matrices(m, r, points) for points in options), key=lambda f: f.growth)


def _matrices(m: int, r: int, points: Row) -> Matrices:
    a = tuple((*(p**i for p in points), Fraction(int(i == m - 1))) for i in range(m))
    g = (
        *(tuple(p**k / _others(points, p) for k in range(r)) for p in points),
        tuple(Fraction(int(k == r - 1)) for k in range(r)),
    )
    b = (
        *(_padded(_product([p for p in points if p != q]), m + r - 1) for q in points),
        _product(points),
    )
    b, g = _balanced(b, g)
    return Matrices(m, r, a, b, g, points, _growth(a, b, g))


def _others(points: Row, point: Fraction) -> Fraction:
    total = Fraction(1)
    for other in points:
        if other != point:
            total *= point - other
    return total


def _product(roots: Row | list[Fraction]) -> Row:
    """Coefficients of the polynomial with these roots, lowest power first."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [
            high - root * low for high, low in zip(shifted, [*found, Fraction(0)], strict=True)
        ]
    return tuple(found)


def _padded(row: Row, length: int) -> Row:
    return (*row, *(Fraction(0) for _ in range(length - len(row))))


def _balanced(b: Matrix, g: Matrix) -> tuple[Matrix, Matrix]:
    """Move the leading factor of each row of *b* to *g*, which saves products at run time."""
    rows_b, rows_g = [], []
    for row, taps in zip(b, g, strict=True):
        lead = next(x for x in reversed(row) if x)
        rows_b.append(tuple(x / lead for x in row))
        rows_g.append(tuple(x * lead for x in taps))
    return tuple(rows_b), tuple(rows_g)


def _growth(a: Matrix, b: Matrix, g: Matrix) -> float:
    """Root of the sum of the products' error variances in the worst output, divided by sqrt(r)."""
    products = [_square(x) * _square(w) for x, w in zip(b, g, strict=True)]
    worst = max(sum(float(c) ** 2 * p for c, p in zip(row, products, strict=True)) for row in a)
    return sqrt(worst / len(g[0]))


def _square(row: Row) -> float:
    return float(sum(x * x for x in row))
