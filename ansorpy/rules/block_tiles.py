"""Drawing the tiles of a GPU block: blocks, virtual threads, threads and registers fit together.

Drawn one axis by one at random, nearly all tiles have too many threads or too few.  Here each
axis takes what those before it left, for all rows of a table at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ansorpy.rules.kernels import thread_factors
from ansorpy.rules.roundness import round_weights
from ansorpy.rules.tiling import space_splits
from ansorpy.schedule.decisions import Decision, Factors, Product
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import Stage

__all__ = ["BlockLimits", "draw_block_tiles", "threads_of"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BlockLimits:
    """Threads of a block, virtual threads of a thread, and elements each thread has in all."""

    least_threads: int
    most_threads: int
    most_vthreads: int
    most_elements: int
    warp: int
    """Threads come in multiples of this where they can."""


@dataclass(frozen=True)
class _Tiles:
    """The settings of one axis by what they use: virtual threads, threads, elements a thread."""

    decision: Decision
    used: Ints
    """``[group, 3]``, all different."""
    first: Ints
    """Where the settings of each group start in ``rows``, and where the last ends."""
    rows: Ints
    weight: Floats
    """How often each group is drawn, beside others."""
    reached: Floats
    """The weights of all rows before each row, and of all."""

    def common(self, warp: int) -> int:
        """The most threads of the axis that a warp is a multiple of."""
        return int(np.gcd(self.used[:, 1], warp).max())


def threads_of(space: Space, stage: Stage, table: Table) -> Ints:
    """Threads of a block of *stage*'s kernel, in each row."""
    columns = {name: table[:, at] for at, name in enumerate(space.columns)}
    return _product(thread_factors(stage), columns) * np.ones(len(table), dtype=np.int64)


def draw_block_tiles(
    space: Space, stage: Stage, table: Table, limits: BlockLimits, rng: np.random.Generator
) -> Table:
    """*table* with the tiles of *stage* drawn within *limits*, in a random order of the axes.

    What a setting uses is drawn from what the axes before left, and the setting from those that
    use as much, round ones more often (:mod:`ansorpy.rules.roundness`).
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
    """Fill in rows *part* of *table*, one axis after the other."""
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
        common = np.gcd(used[:, 1, None] * axis.used[:, 1], limits.warp)
        later = int(np.prod([axis.common(limits.warp) for axis in order[at + 1 :]]))
        warps = allowed & (common * later >= limits.warp)
        allowed = np.where(warps.any(axis=1, keepdims=True), warps, allowed)
        # The largest of such keys belongs to each group with a chance in proportion to its weight.
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
    columns = {name: rows[:, at] for at, name in enumerate(decision.columns)}
    vthreads, threads, *inner = (_product(f, columns) * np.ones_like(rows[:, 0]) for f in factors)
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


def _product(factors: Product, columns: Mapping[str, Ints]) -> Ints:
    total = np.ones(1, dtype=np.int64)
    for factor in factors:
        total = total * (columns[factor] if isinstance(factor, str) else factor)
    return total
