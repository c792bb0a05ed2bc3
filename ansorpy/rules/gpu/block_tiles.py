"""Draw tiles of a GPU block so that virtual threads, threads and registers are within limits.

If each axis were drawn independently, nearly all tiles would have too many or too few threads.
Here each axis is drawn within the limits that previous axes leave, for all rows of a table at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats, Ints
from ansorpy.rules.matching.kernels import thread_factors
from ansorpy.rules.tiling.levels import space_splits
from ansorpy.rules.tiling.roundness import round_weights
from ansorpy.schedule.decisions import Decision, Factors, Product, value_of
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.tables.size import Column, Size, as_array

__all__ = ["BlockLimits", "draw_block_tiles", "threads_of"]


@dataclass(frozen=True)
class BlockLimits:
    """Limits on threads per block, virtual threads per thread, and elements per thread."""

    least_threads: int
    most_threads: int
    most_vthreads: int
    most_elements: int
    warp: int
    """The number of threads is a multiple of this if possible."""


@dataclass(frozen=True)
class _Tiles:
    """The settings of one axis, grouped by (virtual threads, threads, elements per thread)."""

    decision: Decision
    used: Ints
    """``[group, 3]``, all rows different."""
    first: Ints
    """The start of each group's settings in ``rows``, and the end of the last group."""
    rows: Ints
    weight: Floats
    """Relative probability of drawing each group."""
    reached: Floats
    """Cumulative weights: of the rows before each row, and of all rows."""

    def common(self, warp: int) -> int:
        """The largest common divisor of *warp* and the axis's thread counts, over all groups."""
        return int(np.gcd(self.used[:, 1], warp).max())


def threads_of(space: Space, stage: Stage, table: Table) -> Ints:
    """Threads per block of *stage*'s kernel, in each row."""
    return as_array(value_of(thread_factors(stage), space.values(table)), len(table))


def draw_block_tiles(
    space: Space, stage: Stage, table: Table, limits: BlockLimits, rng: np.random.Generator
) -> Table:
    """*table* with the tiles of *stage* drawn within *limits*, in a random order of the axes.

    For each axis, a group is drawn that fits the limits left by previous axes, then a setting of
    the group; round settings are more likely (:mod:`ansorpy.rules.tiling.roundness`).
    """
    tiles = _tiles(space, stage)
    if not tiles or not len(table):
        return table
    table = table.copy()
    for part in np.array_split(np.arange(len(table)), min(len(table), len(tiles))):
        order = [tiles[n] for n in rng.permutation(len(tiles))]
        _draw(space, order, table, part, limits, rng)
    return table


def _draw(
    space: Space, order: Sequence[_Tiles], table: Table, part: npt.NDArray[np.intp],
    limits: BlockLimits, rng: np.random.Generator,
) -> None:  # fmt: skip
    """Fill in rows *part* of *table*, axis by axis."""
    used = np.ones((len(part), 3), dtype=np.int64)
    most = np.array([limits.most_vthreads, limits.most_threads, limits.most_elements])
    for at, axis in enumerate(order):
        reach = int(np.prod([later.used[:, 1].max() for later in order[at + 1 :]]))
        left = (most // used)[:, :, None]
        allowed = (axis.used[:, 0] <= left[:, 0]) & (axis.used[:, 1] <= left[:, 1])
        allowed &= axis.used[:, 2] <= left[:, 2]
        lacking = -(-limits.least_threads // (used[:, 1] * reach))
        enough = allowed & (axis.used[:, 1] >= lacking[:, None])
        some = enough.any(axis=1, keepdims=True)
        allowed = np.where(some, enough, allowed)
        later = int(np.prod([axis.common(limits.warp) for axis in order[at + 1 :]]))
        # Divisors of a warp are few, so that their products with all groups are, too.
        before, which = np.unique(np.gcd(used[:, 1], limits.warp), return_inverse=True)
        common = np.gcd(before[:, None] * axis.used[:, 1], limits.warp)
        warps = allowed & (common * later >= limits.warp)[which]
        allowed = np.where(warps.any(axis=1, keepdims=True), warps, allowed)
        # A group has the largest of these keys with a probability proportional to its weight.
        keys = np.log1p(-rng.random(allowed.shape, dtype=np.float32)) / axis.weight
        group = np.where(allowed, keys, -np.inf).argmax(axis=1)
        used = used * axis.used[group]
        first, last = axis.first[group], axis.first[group + 1]
        low, high = axis.reached[first], axis.reached[last]
        at = low + rng.random(len(group)) * (high - low)
        drawn = np.clip(np.searchsorted(axis.reached, at, side="right") - 1, first, last - 1)
        table[part, space.slices[axis.decision.name]] = axis.rows[drawn]


def _tiles(space: Space, stage: Stage) -> list[_Tiles]:
    """The open splits of *stage*'s space axes."""
    found = []
    for relation in space_splits(stage):
        names = {factor for factors in relation.factors for factor in factors}
        owners = [d for d in space.decisions if names & set(d.columns)]
        if len(owners) == 1:
            found.append(_grouped(owners[0], tuple(relation.factors)))
    return found


@lru_cache(maxsize=256)
def _grouped(decision: Decision, factors: tuple[Product, ...]) -> _Tiles:
    rows = decision.domain.rows
    columns: dict[str, Size] = {n: Column(rows[:, at]) for at, n in enumerate(decision.columns)}
    vthreads, threads, *inner = (as_array(value_of(f, columns), len(rows)) for f in factors)
    elements = vthreads * np.prod(inner, axis=0, dtype=np.int64)
    uses = np.column_stack((vthreads, threads, elements))
    used, which, counts = np.unique(uses, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    first = np.concatenate(([0], np.cumsum(counts)))
    assert isinstance(decision.domain, Factors), decision.name
    weights = round_weights(decision.domain)[order]
    best = np.maximum.reduceat(weights, first[:-1])
    reached = np.concatenate(([0.0], np.cumsum(weights)))
    return _Tiles(decision, used, first, rows[order], best, reached)
