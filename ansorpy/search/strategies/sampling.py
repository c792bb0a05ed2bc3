"""The strategy that only samples and lets the model rank the samples."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.search.population import Pool, score_all
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Sampling"]


@dataclass
class Sampling(Strategy):
    """Draws new samples each round and ranks them with the model; keeps no state."""

    sketches: int = 8
    population: int = 512

    def ask(self, context: Context, n: int) -> Pool:
        drawn = context.samples(self.sketches, self.population)
        groups = score_all(context.task, context.model, drawn)
        return context.pool(groups, groups, n)
