"""Index values at emission time: a linear form over SSA integers, with known bounds.

Variables of unrolled loops are plain integers here, and the variable of a vector loop is a constant
per lane, so most index arithmetic folds away and leaves ``sum(coef * symbol) + const (+ lane)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Affine", "Symbol", "constant", "from_lane_values", "lane_values", "symbol"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """An ``i64`` SSA value (a vector of them if *lanes*), within ``low .. high``.

    ``level`` is the loop scope in whose prelude it is available.  Symbols of equal text are equal,
    so that the quotients in ``x // n * n + x % n`` cancel and a fused loop's accesses are
    contiguous again.
    """

    text: str
    low: int = field(compare=False)
    high: int = field(compare=False)
    level: int = field(compare=False)
    lanes: int = field(default=0, compare=False)


@dataclass(frozen=True, eq=False, slots=True)
class Affine:
    """``sum(coef * symbol) + const``, plus ``lanes[k]`` in vector lane k when *lanes* is given."""

    terms: Mapping[Symbol, int]
    const: int
    lanes: tuple[int, ...] | None = None

    @property
    def is_constant(self) -> bool:
        return not self.terms and self.lanes is None

    @property
    def is_vector(self) -> bool:
        return self.lanes is not None or any(s.lanes for s in self.terms)

    @property
    def has_vector_symbol(self) -> bool:
        return any(s.lanes for s in self.terms)

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value over all lanes and all symbol values."""
        low = high = self.const
        if self.lanes is not None:
            low, high = low + min(self.lanes), high + max(self.lanes)
        for term, coef in self.terms.items():
            ends = (coef * term.low, coef * term.high)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for term, coef in other.terms.items():
            total = terms.get(term, 0) + coef
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return Affine(terms, self.const + other.const, _add_lanes(self.lanes, other.lanes))

    def __sub__(self, other: Affine) -> Affine:
        return self + other.scaled(-1)

    def shifted(self, by: int) -> Affine:
        return Affine(self.terms, self.const + by, self.lanes) if by else self

    def scaled(self, by: int) -> Affine:
        if by == 1:
            return self
        if by == 0:
            return Affine({}, 0)
        lanes = None if self.lanes is None else tuple(by * lane for lane in self.lanes)
        return Affine({s: by * c for s, c in self.terms.items()}, self.const * by, lanes)

    def divided(self, by: int) -> tuple[Affine, Affine]:
        """``(q, r)`` with ``self == by * q + r``, ``q`` holding all terms that divide evenly."""
        even = {s: c // by for s, c in self.terms.items() if c % by == 0}
        rest = {s: c for s, c in self.terms.items() if c % by}
        return Affine(even, 0), Affine(rest, self.const, self.lanes)

    def reduced(self, by: int) -> tuple[Affine, int]:
        """``(x, d)`` with ``floor(self / by) == floor(x / d)``, d as small as the terms allow."""
        common = math.gcd(by, *self.terms.values())
        if common == 1:
            return self, by
        total = lane_values(self, 1)
        floors = [value // common for value in total]
        terms = {s: c // common for s, c in self.terms.items()}
        return _with_lanes(terms, floors, self.lanes is not None), by // common


def _with_lanes(terms: Mapping[Symbol, int], values: list[int], vector: bool) -> Affine:
    """Constant part *values* (one a lane), collapsed to a scalar when all lanes agree."""
    first = values[0]
    if not vector or all(value == first for value in values):
        return Affine(terms, first)
    return Affine(terms, first, tuple(value - first for value in values))


def lane_values(index: Affine, count: int) -> list[int]:
    """``const + lanes[k]`` for each lane; a scalar index counts as *count* equal lanes."""
    if index.lanes is None:
        return [index.const] * count
    return [index.const + lane for lane in index.lanes]


def from_lane_values(values: list[int]) -> Affine:
    """The linear form of a known number per lane."""
    return _with_lanes({}, values, len(values) > 1)


def _add_lanes(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if a is None or b is None:
        return a if b is None else b
    total = tuple(x + y for x, y in zip(a, b, strict=True))
    return total if any(total) else None


def constant(value: int) -> Affine:
    """The linear form of a known number."""
    return Affine({}, value)


def symbol(term: Symbol) -> Affine:
    """The linear form of *term* alone."""
    return Affine({term: 1}, 0)
