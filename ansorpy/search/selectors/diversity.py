"""The selector that picks good candidates which differ from those already picked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.search.population import Candidate, Pool
from ansorpy.search.variety import spread

__all__ = ["Diversity"]


@dataclass(frozen=True)
class Diversity:
    """Picks by score plus a bonus for decisions unlike those of the candidates picked before.

    A model tends to be right or wrong about all programs that differ in few decisions, so one of
    them tells about the others (:func:`~ansorpy.search.variety.spread`).

    Paper: GP-BUCB (Desautels et al., JMLR 2014).  Differs: only the nearest picked candidate
    counts.  ``evolution`` ranks its offers likewise, with half the doubt and also by what was
    measured before.

    Args:
        doubt: Expected error of a score's logarithm where nothing similar was picked.
    """

    doubt: float = 0.5

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        return spread(pool.candidates(), n, self.doubt)
