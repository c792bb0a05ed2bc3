"""The selector that picks the candidates with the highest scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.search.population import Candidate, Pool

__all__ = ["TopK"]


@dataclass(frozen=True)
class TopK:
    """Picks the candidates with the highest scores."""

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        return sorted(pool.candidates(), key=lambda c: -c.score)[:n]
