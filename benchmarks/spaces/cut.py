"""Reduce a placed sketch's space to a grid of a few thousand points, by a fixed rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, prod

import numpy as np

from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.decisions import Domain
from ansorpy.schedule.space import Table
from benchmarks.spaces.grid import with_domains

__all__ = ["Cut", "cut_down"]

_BLOCK = 1 << 16
_MOST_REFUSED = 40
"""Maximum size of the product of domains that is examined, relative to the points wanted."""


@dataclass(frozen=True)
class Cut:
    """A reduced space.

    Args:
        kept: The rows kept of each decision's domain.
        rows: All points that the constraints allow, in the order of the product.
        refused: Number of points that violate the constraints.
    """

    kept: Mapping[str, tuple[tuple[int, ...], ...]]
    rows: Table
    refused: int


def cut_down(sketch: PlacedSketch, points: int) -> Cut:
    """Reduce *sketch*'s space to at most about *points* points that its constraints allow.

    Every domain of *n* rows keeps ``ceil(n ** a)``, with the same power *a* for all: the largest
    that leaves few enough points; any remaining budget goes to the largest domain.  The rows kept
    are evenly spaced in the domain's rows sorted by their innermost factor first, including the
    first and the last, so they represent the whole domain and do not depend on what is fast.
    """
    sizes = {d.name: len(d.domain.rows) for d in sketch.space.decisions}
    limit = _MOST_REFUSED * points

    def at_power(power: float) -> dict[str, int]:
        return {name: ceil(round(size**power, 9)) for name, size in sizes.items()}

    def fits(numbers: Mapping[str, int]) -> bool:
        return prod(numbers.values()) <= limit and len(_cut(sketch, numbers).rows) <= points

    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(at_power(middle)) else (low, middle)
    numbers = at_power(low)
    largest = max(sizes, key=lambda name: sizes[name])
    least, most = numbers[largest], sizes[largest]
    while least < most:
        middle = (least + most + 1) // 2
        ok = fits(numbers | {largest: middle})
        least, most = (middle, most) if ok else (least, middle - 1)
    return _cut(sketch, numbers | {largest: least})


def _cut(sketch: PlacedSketch, numbers: Mapping[str, int]) -> Cut:
    """Keep the given number of rows (*numbers*) of each decision's domain."""
    decisions = sketch.space.decisions
    kept = {d.name: _thinned(d.domain, numbers[d.name]) for d in decisions}
    space = replace(sketch.space, state=with_domains(sketch.space.state, kept))
    table = np.array([sum(row, ()) for row in product(*kept.values())], dtype=np.int64)
    blocks = [table[at : at + _BLOCK] for at in range(0, len(table), _BLOCK)]
    valid = np.concatenate([space.valid(block) for block in blocks])
    return Cut(kept, table[valid], int((~valid).sum()))


def _thinned(domain: Domain, number: int) -> tuple[tuple[int, ...], ...]:
    rows = sorted(map(tuple, domain.rows.tolist()), key=lambda row: row[::-1])
    if number == 1:
        return (rows[len(rows) // 2],)
    at = np.linspace(0, len(rows) - 1, number).round().astype(int)
    return tuple(rows[n] for n in at)
