"""Open decisions, which a sketch leaves to the search, and the values that each may take.

A decision owns one or several *columns* of the population table.  Its domain is ``Factors`` for
the inner factors of one split, which are chosen together, or ``OneOf`` for one value of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt
from operator import index
from typing import TypeAlias

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.errors import ScheduleError
from ansorpy.schedule.tables.size import Size, product

__all__ = [
    "VECTOR",
    "Decision",
    "Domain",
    "Factors",
    "OneOf",
    "Product",
    "columns_of",
    "cut",
    "divisors",
    "factorizations",
    "known",
    "moves",
    "nearest",
    "open_columns",
    "value_of",
]  # fmt: skip


Product = tuple[int | str, ...]
"""A product of integers and column names; a column name stands for an open factor."""


def value_of(factors: Product, values: Mapping[str, Size]) -> Size:
    """The product of *factors*, given the *values* of its columns."""
    return product(values[f] if isinstance(f, str) else f for f in factors)


def open_columns(factors: Product) -> tuple[str, ...]:
    """The columns in *factors*; () if all factors are numbers."""
    return tuple(f for f in factors if isinstance(f, str))


def known(factors: Product) -> int | None:
    """The product of *factors*; None if some of them are columns."""
    total = None if open_columns(factors) else value_of(factors, {})
    return total if isinstance(total, int) else None


@dataclass(frozen=True, repr=False)
class OneOf:
    """A choice among *values*, left to the search: ``state.split("C", "j", (OneOf((8, 16)),))``.

    Raises:
        ScheduleError: There are no *values*, or they are not whole numbers.
    """

    values: tuple[int, ...]

    def __post_init__(self) -> None:
        try:
            values = tuple(map(index, self.values))
        except TypeError:
            values = ()
        if not values:
            raise ScheduleError(
                f"{self.values!r} are no numbers to choose from",
                hint="give a tuple of one int or more",
            )
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return f"OneOf({self.values})"

    @property
    def rows(self) -> Ints:
        """Every allowed setting, one per row; the table has one column."""
        return np.asarray(self.values, dtype=np.int64)[:, None]


@dataclass(frozen=True)
class Factors:
    """``parts`` inner factors whose product divides *extent*, the last at most ``max_innermost``.

    With a *tail* other than guard the product may also be a tile that does not divide
    (:func:`tiles_of`).  A domain reduced by :func:`cut` has only the rows *kept*.
    Source: TVM's SplitFactorizationMemo (``max_innermost_split_factor`` = 64).
    """

    extent: int
    parts: int
    max_innermost: int = 64
    tail: str = "guard"
    kept: tuple[tuple[int, ...], ...] = ()

    @property
    def rows(self) -> Ints:
        if self.kept:
            return _as_table(self.kept)
        return factorizations(self.extent, self.parts, self.max_innermost, self.tail)


Domain: TypeAlias = OneOf | Factors


@dataclass(frozen=True)
class Decision:
    """A named open choice and the table columns that hold it."""

    name: str
    columns: tuple[str, ...]
    domain: Domain


def columns_of(decisions: Iterable[Decision]) -> tuple[str, ...]:
    """The columns of *decisions*, in the order of the table."""
    return tuple(column for decision in decisions for column in decision.columns)


def cut(domain: Domain, kept: Iterable[Sequence[int]]) -> Domain:
    """*domain* with only the rows *kept*, for spaces small enough to measure exhaustively.

    Raises:
        ValueError: No row is kept, or one that is not in *domain*.
    """
    rows = sorted(tuple(int(v) for v in row) for row in kept)
    if not rows or not set(rows) <= set(map(tuple, domain.rows.tolist())):
        raise ValueError(f"{rows} are not rows of {domain}")
    if isinstance(domain, OneOf):
        return OneOf(tuple(value for (value,) in rows))
    return replace(domain, kept=tuple(rows))


def nearest(domain: Domain, wanted: Ints, other_than: Ints | None = None) -> Ints:
    """The row of *domain* nearest to each row of *wanted*, summing log distances of factors.

    With *other_than* each result differs from the row there, unless the domain has only one.
    """
    rows = domain.rows
    sizes = np.log2(np.maximum(rows, 0) + 1.0)
    distance = np.abs(np.log2(np.maximum(wanted, 0) + 1.0)[:, None] - sizes[None]).sum(axis=2)
    if other_than is not None and len(rows) > 1:
        distance[(rows[None] == other_than[:, None]).all(axis=2)] = np.inf
    found: Ints = rows[distance.argmin(axis=1)]
    return found


@lru_cache(maxsize=1024)
def _as_table(rows: tuple[tuple[int, ...], ...]) -> Ints:
    return np.asarray(rows, dtype=np.int64)


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of *n*, in ascending order."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


@lru_cache(maxsize=4096)
def factorizations(extent: int, parts: int, max_innermost: int, tail: str = "guard") -> Ints:
    """All rows of *parts* positive factors whose product is a tile of *extent*.

    A tile divides the extent, or is one of :func:`tiles_of` for the *tail*.  With three parts or
    more, a tile that does not divide is at most :data:`LONGEST_RAGGED` long; otherwise a long axis
    would have hundreds of thousands of rows.
    """
    longest = extent if parts < 3 else LONGEST_RAGGED
    tiles = [n for n in tiles_of(extent, tail) if n <= longest or extent % n == 0]
    rows = [row for tile in tiles for row in _exact_rows(tile, parts)]
    table = np.asarray(sorted(rows), dtype=np.int64).reshape(len(rows), parts)
    return table[table[:, -1] <= max_innermost]


def tiles_of(extent: int, tail: str) -> tuple[int, ...]:
    """Tile sizes worth trying for *extent*: its divisors and, depending on *tail*:

    ``shift``: products of 2, 3, 5 and 7 whose tiles exceed the extent in all by at most an eighth
    (the share of work done twice); ``peel``: those, and every tile up to 32, which registers may
    hold; ``even``: the larger of two sizes that differ by one; ``cover``: as ``shift``, also tiles
    larger than the extent, but none longer than what a GPU block computes.

    For a long axis, ``shift`` and ``peel`` also have multiples of :data:`VECTOR`, if their tiles
    take no more vectors in all than the axis: 71 elements take five, as do five tiles of 16, but
    three tiles of 24 take six.
    """
    if tail == "guard":
        return divisors(extent)
    if tail == "cover":
        reach = min(extent * (WASTE + 1) // WASTE, LONGEST_COVER)
        found = {n for n in _smooth(reach) if _waste_little(extent, n)}
        return tuple(sorted(found | {n for n in divisors(extent) if n <= LONGEST_COVER}))
    if tail == "even":
        return tuple(sorted({*divisors(extent), *(-(-extent // n) for n in range(1, extent))}))
    ragged = {n for n in _smooth(extent) if _waste_little(extent, n)}
    if extent > 2 * VECTOR:
        vectors = -(-extent // VECTOR) * VECTOR
        ragged |= {n for n in range(VECTOR, extent, VECTOR) if -(-extent // n) * n <= vectors}
    if tail == "peel":
        ragged |= set(range(1, min(extent, 2 * VECTOR) + 1))
    return tuple(sorted({*divisors(extent), *ragged}))


def _waste_little(extent: int, tile: int) -> bool:
    return -(-extent // tile) * tile * WASTE <= extent * (WASTE + 1)


WASTE = 8
"""Tiles that do not divide an axis may recompute at most one part in this many of it."""

LONGEST_COVER = 512
"""The most elements along one axis that a GPU block computes, or reads at once."""

LONGEST_RAGGED = 4096
"""The most elements in a tile of three parts that does not divide its axis.

A longer axis has many shorter tiles; longer ones would only change the outermost loop's extent.
"""

VECTOR = 16
"""Granularity, in elements, of tiles along the vector axis: float32 values of an AVX-512 vector."""


@lru_cache(maxsize=64)
def _smooth(limit: int) -> tuple[int, ...]:
    numbers = {1}
    for prime in (2, 3, 5, 7):
        for n in sorted(numbers):
            while n * prime <= limit:
                n *= prime
                numbers.add(n)
    return tuple(sorted(numbers))


@lru_cache(maxsize=65536)
def _exact_rows(number: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """All rows of *parts* factors whose product is *number*."""
    if parts == 1:
        return ((number,),)
    return tuple(
        (first, *rest)
        for first in divisors(number)
        for rest in _exact_rows(number // first, parts - 1)
    )


@lru_cache(maxsize=256)
def moves(domain: Domain) -> Ints:
    """``moves[direction, row]``: the row of *domain* one step on, or *row* where there is none.

    A step changes one column to its next smaller or larger value in the domain and keeps the
    others.  It may also change a second column so that the product of the two stays the same.  So
    *n* columns have ``n * (n + 1)`` directions: a factor moves from any level of a split to any
    other, the outermost included.
    """
    columns = domain.rows.T
    found: list[Ints] = []
    for first, column in enumerate(columns):
        others = np.delete(columns, first, axis=0)
        found += _both_ways(column, others)
        for second in range(first + 1, len(columns)):
            others = np.delete(columns, [first, second], axis=0)
            found += _both_ways(column, np.vstack([others, column * columns[second]]))
    return np.array(found, dtype=np.int64)


def _both_ways(column: Ints, held: Ints) -> tuple[Ints, Ints]:
    """For each row the next ones below and above in *column*, among those alike in all *held*."""
    order = np.lexsort((column, *held))
    alike = (held[:, order[1:]] == held[:, order[:-1]]).all(axis=0)
    low, high = order[:-1][alike], order[1:][alike]
    below, above = np.arange(len(column)), np.arange(len(column))
    below[high], above[low] = low, high
    return below, above
