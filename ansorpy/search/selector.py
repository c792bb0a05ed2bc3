"""Which candidates of a pool are worth measuring."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ansorpy.search.population import Candidate, Pool

__all__ = ["EpsilonGreedy", "Selector", "TopK"]


class Selector(Protocol):
    """Picks from a pool; never returns a candidate twice."""

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        """At most *n* candidates."""


@dataclass(frozen=True)
class TopK:
    """The candidates with the highest scores."""

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        return sorted(_different([*pool.best, *pool.random]), key=lambda c: -c.score)[:n]


@dataclass(frozen=True)
class EpsilonGreedy:
    """Mostly the best; a share of random candidates keeps the model honest.

    Paper: OSDI'20 §5.1.  Source: TVM ``eps_greedy`` 0.05.  A fractional share is rounded up or
    down at random, so rounds of fewer than twenty candidates explore too.
    """

    epsilon: float = 0.05

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        explore = int(self.epsilon * n + rng.random())
        order = rng.permutation(len(pool.random))
        surprises = [pool.random[i] for i in order]
        greedy = _different(pool.best)[: n - explore]
        chosen = _different([*greedy, *surprises[: explore + len(greedy)]])
        if len(chosen) < n:
            chosen = _different([*chosen, *pool.best, *surprises])
        return chosen[:n]


def _different(candidates: Iterable[Candidate]) -> list[Candidate]:
    return list({c.key: c for c in candidates}.values())
