"""Draw GPU tiles by weights that make some sizes more likely to be tried than others."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ansorpy.arrays import Floats, Ints
from ansorpy.schedule.decisions import Decision, Factors
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import SplitRelation, Stage

__all__ = ["draw_round", "draw_splits", "round_weights"]


_ODD = 0.2
"""Relative draw weight of a factor that is not a power of two.

Such a factor needs divisions to locate a thread, its rows are not whole vectors, and it uses
shared-memory banks unevenly.
"""

_RAGGED = 0.5
"""Relative draw weight of tiles that do not divide the axis."""


@lru_cache(maxsize=256)
def round_weights(domain: Factors) -> Floats:
    """The draw weight of each row of *domain*."""
    rows = domain.rows
    odd = ((rows & (rows - 1)) != 0).sum(axis=1)
    ragged = domain.extent % np.prod(rows, axis=1) != 0
    found: Floats = _ODD**odd * np.where(ragged, _RAGGED, 1.0)
    return found


def draw_round(domain: Factors, n: int, rng: np.random.Generator) -> Ints:
    """*n* rows of *domain*, drawn by :func:`round_weights`."""
    weights = round_weights(domain)
    drawn = rng.choice(len(weights), size=n, p=weights / weights.sum())
    found: Ints = domain.rows[drawn]
    return found


def draw_splits(
    space: Space, table: Table, rng: np.random.Generator, of: Stage | None = None
) -> Table:
    """*table* with the open factors of splits drawn again, round ones more likely.

    These are all splits, or those of the reduce axes of stage *of*.
    """
    table = table.copy()
    for decision in space.decisions:
        if isinstance(decision.domain, Factors) and (of is None or _is_of_sum(decision, of)):
            table[:, space.slices[decision.name]] = draw_round(decision.domain, len(table), rng)
    return table


def _is_of_sum(decision: Decision, stage: Stage) -> bool:
    """Whether *decision* is about a factor of a split of a reduce axis of *stage*."""
    names = {axis.name for axis in stage.compute.reduce_axes}
    splits = [r for r in stage.relations if isinstance(r, SplitRelation) and r.parent in names]
    columns = {f for split in splits for factors in split.factors for f in factors}
    return not columns.isdisjoint(decision.columns)
