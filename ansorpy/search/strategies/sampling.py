"""The strategy that only samples and lets the model rank the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.measure.result import MeasureResult
from ansorpy.search.population import Candidate, Pool, sample_valid, score_all, top
from ansorpy.search.strategy import Context

__all__ = ["Sampling"]


@dataclass
class Sampling:
    """Draws new samples each round and ranks them with the model; keeps no state."""

    sketches: int = 8
    population: int = 512

    def ask(self, context: Context, n: int) -> Pool:
        drawn = context.source.draw(self.sketches, context.rng)
        share = -(-self.population // len(drawn))
        tables = [(sketch, sample_valid(sketch, share, context.rng)) for sketch in drawn]
        groups = score_all(context.task, context.model, tables)
        best = top(groups, 2 * n, context.measured)
        return Pool(tuple(best), context.some(groups, 2 * n))

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        """Do nothing: each round starts from new samples."""
