"""Random search without a cost model: the baseline for the other strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.measure.result import MeasureResult
from ansorpy.search.population import Candidate, Pool, sample_valid
from ansorpy.search.selector import different
from ansorpy.search.strategy import Context

__all__ = ["RandomSearch"]

_UNRANKED = 1.0


@dataclass
class RandomSearch:
    """Samples programs by the rules and never queries the cost model.

    The source draws the placed sketches, one of every sketch as far as ``sketches`` allows, and the
    same number of rows is sampled from each.  All scores are equal, so no selector can prefer one.
    """

    sketches: int = 16
    population: int = 256

    def ask(self, context: Context, n: int) -> Pool:
        rng = context.rng
        drawn = context.source.draw(self.sketches, rng)
        share = -(-max(self.population, 2 * n) // len(drawn))
        made = [
            Candidate(sketch, row, _UNRANKED)
            for sketch in drawn
            for row in sample_valid(sketch, share, rng)
        ]
        everyone = [made[at] for at in rng.permutation(len(made))]
        return Pool(tuple(different(c for c in everyone if c.key not in context.measured)))

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        """Remember nothing."""
