"""Sizes: one integer, or a column with one integer a candidate.

Everything that computes extents (bounds, buffer shapes, features, constraints) is written with
the operations here, so it runs on one program or on a whole population alike.  The truth value
of a column raises: code that computes sizes cannot branch on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Column", "Size", "above", "as_array", "ceil_div", "product", "size_gcd", "size_max",
    "size_min", "split_extents",
]  # fmt: skip

Ints = npt.NDArray[np.int64]


class Column:
    """One int64 a row, with the arithmetic sizes need: ``+ - * //`` and comparisons to masks."""

    __slots__ = ("values",)
    __array_ufunc__ = None

    def __init__(self, values: npt.ArrayLike):
        self.values: Ints = np.asarray(values, dtype=np.int64)

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


Size: TypeAlias = int | Column


def _raw(size: Size) -> Ints | int:
    return size.values if isinstance(size, Column) else size


def as_array(size: Size, rows: int) -> Ints:
    """*size* as an array of *rows* values; a plain int is repeated."""
    if isinstance(size, Column):
        return size.values
    return np.full(rows, size, dtype=np.int64)


def ceil_div(a: Size, b: Size) -> Size:
    """``a / b`` rounded up."""
    return -((-a) // b)


def size_min(a: Size, b: Size) -> Size:
    """The smaller size, row by row."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return Column(np.minimum(_raw(a), _raw(b)))


def size_max(a: Size, b: Size) -> Size:
    """The larger size, row by row."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return Column(np.maximum(_raw(a), _raw(b)))


def size_gcd(a: Size, b: Size) -> Size:
    """The greatest common divisor, row by row; of 0 and b it is b."""
    if isinstance(a, int) and isinstance(b, int):
        return gcd(a, b)
    return Column(np.gcd(_raw(a), _raw(b)))


def product(sizes: Iterable[Size]) -> Size:
    """All *sizes* multiplied; 1 for none."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def above(a: Size, b: int) -> Size:
    """1 where ``a > b``, else 0."""
    return int(a > b) if isinstance(a, int) else Column(a.values > b)


def split_extents(extent: Size, factors: Sequence[Size]) -> tuple[Size, ...]:
    """Extents of the loops a split makes of *extent*, outermost first.

    A factor larger than what is left to cover is cut down to it, as in TVM: a stage whose box
    shrank under compute_at runs fewer iterations, not masked ones.
    """
    parts: list[Size] = []
    for factor in reversed(factors):
        parts.append(size_min(extent, factor))
        extent = ceil_div(extent, factor)
    return (extent, *reversed(parts))
