"""The selector that weighs a score against its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, pi, sqrt

import numpy as np

from ansorpy.search.population import Candidate, Pool
from ansorpy.search.selector import deviation_of

__all__ = ["ExpectedImprovement", "expected_improvement"]


@dataclass(frozen=True)
class ExpectedImprovement:
    """Picks the candidates that are expected to improve most on the fastest program so far.

    A score is taken as the mean of a normal distribution and its deviation as the standard
    deviation; the cost model must know it (``rf``).  Before anything ran, every throughput is an
    improvement.

    Paper: AdaTune (Li et al., NeurIPS 2020); the criterion is Jones et al.'s of 1998.  Source:
    github limenghao/AdaTune.  Differs: it picks from the strategy's candidates, while AdaTune's
    annealing maximises it; the incumbent counts with its score under today's model, so both sides
    have one unit; without deviation the improvement is ``max(0, score - incumbent)``, where the
    public code compares instead of assigning.
    """

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        best = 0.0 if pool.fastest is None else pool.fastest.score
        offered = pool.candidates()
        gain = {c.key: expected_improvement(c.score, deviation_of(c, "ei"), best) for c in offered}
        return sorted(offered, key=lambda c: -gain[c.key])[:n]


def expected_improvement(mean: float, deviation: float, best: float) -> float:
    """The mean of ``max(0, x - best)`` for a normally distributed ``x``."""
    if deviation == 0:
        return max(0.0, mean - best)
    z = (mean - best) / deviation
    below, density = erfc(-z / sqrt(2)) / 2, exp(-z * z / 2) / sqrt(2 * pi)
    return (mean - best) * below + deviation * density
