"""Sizes: one integer, or a column with one integer per candidate.

All code that computes extents (bounds, buffer shapes, features, constraints) is written with the
operations here, so it runs on one program or on a whole population.  A column has no truth value,
so such code cannot branch on sizes.  It can therefore also run once on symbols, which record the
operations for any population (:mod:`ansorpy.schedule.tables.formulas`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Ints
from ansorpy.ir.extents import Symbolic, multiple_of
from ansorpy.ir.symbols import SizeOp, Symbol

__all__ = [
    "Column", "Size", "above", "as_array", "at_most", "both", "ceil_div", "either", "fails",
    "is_multiple", "never", "product", "size_gcd", "size_max", "size_min", "split_extents",
]  # fmt: skip


class Column:
    """One int64 per row, with the arithmetic that sizes need: ``+ - * //``."""

    __slots__ = ("_floats", "values")
    __array_ufunc__ = None

    def __init__(self, values: npt.ArrayLike):
        self.values: Ints = np.asarray(values, dtype=np.int64)
        self._floats: npt.NDArray[np.float64] | None = None

    @property
    def floats(self) -> npt.NDArray[np.float64]:
        """The values as floating-point numbers, converted once; the array must not be modified."""
        if self._floats is None:
            self._floats = self.values.astype(np.float64)
        return self._floats

    def __bool__(self) -> bool:
        raise TypeError("a column of sizes has no truth value: code on sizes must not branch")

    def __add__(self, other: Size) -> Column:
        return Column(self.values + _raw(other))

    __radd__ = __add__

    def __sub__(self, other: Size) -> Column:
        return Column(self.values - _raw(other))

    def __rsub__(self, other: Size) -> Column:
        return Column(_raw(other) - self.values)

    def __mul__(self, other: Size) -> Column:
        return Column(self.values * _raw(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Column:
        return Column(self.values // _raw(other))

    def __rfloordiv__(self, other: Size) -> Column:
        return Column(_raw(other) // self.values)

    def __neg__(self) -> Column:
        return Column(-self.values)

    def __repr__(self) -> str:
        return f"Column({self.values.tolist()})"


Size: TypeAlias = int | Column | Symbol


def _raw(size: Size) -> Ints | int:
    if isinstance(size, Symbol):
        raise TypeError("columns and symbols do not mix")
    return size.values if isinstance(size, Column) else size


def as_array(size: Size, rows: int) -> Ints:
    """*size* as an array of *rows* values; a plain int is repeated."""
    raw = _raw(size)
    return np.full(rows, raw, dtype=np.int64) if isinstance(raw, int) else raw


def _symbolic(op: SizeOp, a: Size, b: Size) -> Size | None:
    """*op* on symbols; None if neither operand is a symbol."""
    symbol = a if isinstance(a, Symbol) else b
    found: Size | None = symbol.combine(op, a, b) if isinstance(symbol, Symbol) else None
    return found


def ceil_div(a: Size, b: Size) -> Size:
    """``a / b`` rounded up."""
    return -((-a) // b)


def size_min(a: Size, b: Size) -> Size:
    """The smaller size, row by row."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    symbolic = _symbolic(SizeOp.MIN, a, b)
    return Column(np.minimum(_raw(a), _raw(b))) if symbolic is None else symbolic


def size_max(a: Size, b: Size) -> Size:
    """The larger size, row by row."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    symbolic = _symbolic(SizeOp.MAX, a, b)
    return Column(np.maximum(_raw(a), _raw(b))) if symbolic is None else symbolic


def size_gcd(a: Size, b: Size) -> Size:
    """The greatest common divisor, row by row; that of 0 and *b* is *b*."""
    if isinstance(a, int) and isinstance(b, int):
        return gcd(a, b)
    symbolic = _symbolic(SizeOp.GCD, a, b)
    return Column(np.gcd(_raw(a), _raw(b))) if symbolic is None else symbolic


def product(sizes: Iterable[Size]) -> Size:
    """The product of all *sizes*; 1 if there are none."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def above(a: Size, b: int) -> Size:
    """1 where ``a > b``, else 0; for dimensions, it is 1 if *a* may be above *b*."""
    symbolic = _symbolic(SizeOp.ABOVE, a, b)
    if symbolic is not None:
        return symbolic
    return int(a > b) if isinstance(a, int) else Column(_raw(a) > b)


# Conditions are sizes of 0 and 1


def both(a: Size, b: Size) -> Size:
    """1 where both conditions hold, else 0."""
    return a * b


def either(a: Size, b: Size) -> Size:
    """1 where one of the conditions holds, else 0."""
    if isinstance(a, int):
        return 1 if a else b
    return (1 if b else a) if isinstance(b, int) else size_max(a, b)


def fails(a: Size) -> Size:
    """1 where condition *a* does not hold, else 0."""
    return 1 - a


def never(a: Size) -> bool:
    """Whether condition *a* is known to hold nowhere, whatever the decisions are."""
    return isinstance(a, int) and not a


def at_most(a: Size, b: int) -> Size:
    """1 where ``a <= b``, else 0; for dimensions, it is 0 if *a* may be above *b*."""
    return fails(above(a, b))


def is_multiple(a: Size, b: Size) -> Size:
    """1 where *a* is a multiple of *b*, else 0; no size is negative.

    For dimensions, it is 1 if *a* is one for all sizes.
    """
    if isinstance(b, int) and (b == 1 or (isinstance(a, int) and a == 0)):
        return 1
    if isinstance(a, Symbolic) and isinstance(b, int):
        return int(multiple_of(a) % b == 0)
    return at_most(a - a // b * b, 0)


def split_extents(
    extent: Size, factors: Sequence[Size], *, whole: bool = False
) -> tuple[Size, ...]:
    """Extents of the loops into which a split divides *extent*, outermost first.

    A factor larger than the remaining extent is reduced to it, as in TVM: a stage whose box was
    shrunk by compute_at runs fewer iterations, not masked ones.  *whole* keeps the innermost
    factor.  An extent that depends on dimensions keeps all factors: tiles are numbers.
    """
    parts: list[Size] = []
    for factor in reversed(factors):
        kept = isinstance(extent, Symbolic) or (whole and not parts)
        parts.append(factor if kept else size_min(extent, factor))
        extent = ceil_div(extent, factor)
    return (extent, *reversed(parts))
