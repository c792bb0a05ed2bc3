"""Open decisions: what a sketch leaves to the search, with the values each may take.

A decision owns one or several *columns* of the population table.  ``Factors`` is a joint
decision over the inner factors of one split; ``Choices`` one value of a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Choices", "Decision", "Domain", "Factors", "Product", "factorizations", "resolve"]

Ints = npt.NDArray[np.int64]

Product = tuple[int | str, ...]
"""A product of integers and column names: how loop extents refer to open factors."""


@dataclass(frozen=True)
class Choices:
    """One of *values*."""

    values: tuple[int, ...]

    @property
    def rows(self) -> Ints:
        """Every allowed setting, a row each; here of one column."""
        return np.asarray(self.values, dtype=np.int64)[:, None]


@dataclass(frozen=True)
class Factors:
    """``parts`` inner factors whose product divides *extent*, the last at most ``max_innermost``.

    Source: TVM's SplitFactorizationMemo (``max_innermost_split_factor`` = 64).
    """

    extent: int
    parts: int
    max_innermost: int = 64

    @property
    def rows(self) -> Ints:
        return factorizations(self.extent, self.parts, self.max_innermost)


Domain: TypeAlias = Choices | Factors


@dataclass(frozen=True)
class Decision:
    """A named open choice and the table columns that hold it."""

    name: str
    columns: tuple[str, ...]
    domain: Domain


@lru_cache(maxsize=4096)
def _divisors(n: int) -> tuple[int, ...]:
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


@lru_cache(maxsize=4096)
def factorizations(extent: int, parts: int, max_innermost: int) -> Ints:
    """All rows of *parts* positive factors whose product divides *extent* (lexicographic)."""
    rows = _factor_rows(extent, parts)
    table = np.asarray(rows, dtype=np.int64).reshape(len(rows), parts)
    return table[table[:, -1] <= max_innermost]


@lru_cache(maxsize=65536)
def _factor_rows(extent: int, parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 0:
        return ((),)
    return tuple(
        (first, *rest)
        for first in _divisors(extent)
        for rest in _factor_rows(extent // first, parts - 1)
    )


def resolve(product: Product, values: dict[str, int]) -> Product:
    """*product* with every column that *values* knows replaced by its number."""
    known = [values.get(f, f) if isinstance(f, str) else f for f in product]
    number = 1
    for factor in known:
        number *= factor if isinstance(factor, int) else 1
    open_columns = tuple(f for f in known if isinstance(f, str))
    return open_columns if number == 1 and open_columns else (number, *open_columns)
