"""The selector that prefers good candidates that differ from each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.search.population import Candidate, Pool

__all__ = ["Submodular"]


@dataclass(frozen=True)
class Submodular:
    """Picks good candidates that differ from each other.

    Repeatedly takes the candidate for which the score plus ``weight`` times the share of its
    decisions that are new is highest.  A decision is new if no candidate picked so far made it.

    Scores are scaled to run from 0 (the pool's worst) to 1 (its best); the placed sketch counts
    as one decision.

    Paper: AutoTVM, arXiv 1805.08318 §3.3: the number of covered decisions is submodular, so taking
    the best next one is nearly optimal.  Source: TVM's ``submodular_pick``.  Differs: both terms
    are normalized, so the weight does not depend on the model's unit or on the number of decisions.
    """

    weight: float = 0.5

    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        offered = pool.candidates()
        if not offered:
            return []
        scores = np.array([c.score for c in offered])
        value = (scores - scores.min()) / max(float(np.ptp(scores)), np.finfo(np.float64).tiny)
        decisions = [_decisions(c) for c in offered]
        fresh = np.ones(len(offered))
        known: set[object] = set()
        left = np.ones(len(offered), dtype=np.bool_)
        picked: list[Candidate] = []
        for _ in range(min(n, len(offered))):
            at = int(np.argmax(np.where(left, value + self.weight * fresh, -np.inf)))
            left[at] = False
            picked.append(offered[at])
            known |= decisions[at]
            fresh = np.array([len(d - known) / len(d) for d in decisions])
        return picked


def _decisions(candidate: Candidate) -> frozenset[object]:
    sketch = candidate.sketch
    return frozenset((sketch.key, *sketch.space.tokens(candidate.row)))
