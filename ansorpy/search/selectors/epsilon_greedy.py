"""The selector that reserves a share for random candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.search.population import Candidate, Pool
from ansorpy.search.selector import different

__all__ = ["EpsilonGreedy"]


@dataclass(frozen=True)
class EpsilonGreedy:
    """Picks the best candidates and a small share of random ones, which expose model errors.

    Paper: OSDI'20 §5.1.  Source: TVM ``eps_greedy`` 0.05.  A fractional share is rounded up or
    down at random, so rounds of fewer than twenty candidates explore too.
    """

    epsilon: float = 0.05

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        explore = int(self.epsilon * n + rng.random())
        order = rng.permutation(len(pool.random))
        surprises = [pool.random[i] for i in order]
        greedy = different(pool.best)[: n - explore]
        chosen = different([*greedy, *surprises[: explore + len(greedy)]])
        if len(chosen) < n:
            chosen = different([*chosen, *pool.best, *surprises])
        return chosen[:n]
