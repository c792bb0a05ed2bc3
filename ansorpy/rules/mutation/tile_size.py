"""Move a factor from one tile level to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.rules.base import Mutation
from ansorpy.rules.tiling.roundness import draw_round
from ansorpy.schedule.decisions import Decision, Factors, divisors, nearest
from ansorpy.schedule.space import Space, Table

__all__ = ["MutateTileSize", "move_factor"]


@dataclass(frozen=True)
class MutateTileSize(Mutation):
    """In each row, move a random divisor from one level of a split to another.

    The levels (including the outermost, which has no column) are permuted; the first that can give
    a factor gives it to the next in the permutation.  The product does not change, and the
    innermost level never exceeds its domain's cap.  If tiles need not divide, the outermost level
    is left out and half of the rows draw new tiles.  In a pruned domain, the nearest row of the
    domain other than the present one is taken.
    Source: TVM's MutateTileSize.  Differs: the split is drawn uniformly from those that can change
    (extent above 1), where TVM redraws a few times and gives up.
    """

    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        splits = [d for d in space.decisions if _can_change(d)]
        if not splits or not len(table):
            return table
        mutated = table.copy()
        picked = rng.integers(len(splits), size=len(table))
        for number, decision in enumerate(splits):
            rows = np.flatnonzero(picked == number)
            if len(rows):
                at = space.slices[decision.name]
                mutated[rows, at] = _mutate_split(decision, mutated[rows, at], rng)
        return mutated


def _can_change(decision: Decision) -> bool:
    return isinstance(decision.domain, Factors) and len(decision.domain.rows) > 1


def _mutate_split(decision: Decision, inner: Ints, rng: np.random.Generator) -> Ints:
    domain = decision.domain
    assert isinstance(domain, Factors), decision.name
    if domain.tail != "guard":
        mutated = _mutate_ragged(domain, inner, rng)
    else:
        outer = domain.extent // inner.prod(axis=1)
        mutated = move_factor(np.column_stack((outer, inner)), domain.max_innermost, rng)[:, 1:]
    return nearest(domain, mutated, other_than=inner) if domain.kept else mutated


def _mutate_ragged(domain: Factors, inner: Ints, rng: np.random.Generator) -> Ints:
    """Move a factor between inner levels in half of the rows; draw a new tile in the others.

    With tail ``"cover"`` (GPUs), round tiles are more likely
    (:mod:`ansorpy.rules.tiling.roundness`).
    """
    moved = move_factor(inner, domain.max_innermost, rng)
    if domain.tail == "cover":
        drawn = draw_round(domain, len(inner), rng)
    else:
        drawn = domain.rows[rng.integers(len(domain.rows), size=len(inner))]
    return np.where(rng.random(len(inner))[:, None] < 0.5, moved, drawn)


def move_factor(levels: Ints, max_innermost: int, rng: np.random.Generator) -> Ints:
    """*levels* (outermost first) with one random factor per row moved to another level."""
    levels = levels.copy()
    rows, n = levels.shape
    order = rng.permuted(np.tile(np.arange(n), (rows, 1)), axis=1)
    pending = np.ones(rows, dtype=np.bool_)
    for position in range(n):
        source, sink = order[:, position], order[:, (position + 1) % n]
        at = np.arange(rows)
        room = max_innermost // np.maximum(levels[at, sink], 1)
        most = np.where(sink == n - 1, room, levels[at, source])
        divisor = _random_divisor(levels[at, source], most, rng)
        moving = np.flatnonzero(pending & (divisor > 1))
        levels[moving, source[moving]] //= divisor[moving]
        levels[moving, sink[moving]] *= divisor[moving]
        pending[moving] = False
    return levels


def _random_divisor(numbers: Ints, most: Ints, rng: np.random.Generator) -> Ints:
    """A uniformly drawn divisor in ``2 .. most`` of each number; 1 if there is none."""
    distinct, which = np.unique(numbers, return_inverse=True)
    lists = [divisors(int(n))[1:] for n in distinct]
    width = max(1, *map(len, lists))
    padded = np.full((len(lists), width), np.iinfo(np.int64).max, dtype=np.int64)
    for row, found in zip(padded, lists, strict=True):
        row[: len(found)] = found
    choices = padded[which]
    count = (choices <= most[:, None]).sum(axis=1)
    drawn = choices[np.arange(len(numbers)), rng.integers(0, np.maximum(count, 1))]
    return np.where(count > 0, drawn, 1)
