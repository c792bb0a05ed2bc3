"""The selector that reserves a share for random candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.search.population import Candidate, Pool, different
from ansorpy.search.selector import deviation_of

__all__ = ["EpsilonGreedy"]


@dataclass(frozen=True)
class EpsilonGreedy:
    """Picks the best candidates and a small share of random ones, which expose model errors.

    Paper: OSDI'20 §5.1.  Source: TVM ``eps_greedy`` 0.05.  A fractional share is rounded up or
    down at random, so rounds of fewer than twenty candidates explore too.

    Args:
        epsilon: The share.
        contextual: Instead, the share is the model's mean deviation over the random candidates,
            relative to the score of the fastest program: it falls as the model grows certain.
            Paper: AdaTune (Li et al., NeurIPS 2020), which draws 20 configurations for the mean.
            Before anything ran, the mean score of the random candidates stands for the fastest.
    """

    epsilon: float = 0.05
    contextual: bool = False

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        explore = int(self._share(pool) * n + rng.random())
        order = rng.permutation(len(pool.random))
        surprises = [pool.random[i] for i in order]
        greedy = different(pool.best)[: n - explore]
        chosen = different([*greedy, *surprises[: explore + len(greedy)]])
        if len(chosen) < n:
            chosen = different([*chosen, *pool.best, *surprises])
        return chosen[:n]

    def _share(self, pool: Pool) -> float:
        if not self.contextual or not pool.random:
            return self.epsilon
        deviation = np.mean([deviation_of(c, "contextual epsilon_greedy") for c in pool.random])
        score = np.mean([c.score for c in pool.random])
        best = float(score) if pool.fastest is None else pool.fastest.score
        return float(np.clip(deviation / best, 0.0, 1.0))
