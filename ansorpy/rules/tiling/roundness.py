"""Weights that make some GPU tile sizes more likely to be tried than others."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ansorpy.arrays import Floats, Ints
from ansorpy.schedule.decisions import Factors

__all__ = ["draw_round", "round_weights"]


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
