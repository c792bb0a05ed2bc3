"""Random search without a cost model: the baseline for the other strategies."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.search.population import Pool
from ansorpy.search.strategy import Context, Strategy

__all__ = ["RandomSearch"]


@dataclass
class RandomSearch(Strategy):
    """Samples programs by the rules and never queries the cost model.

    The source draws the placed sketches, one of every sketch as far as ``sketches`` allows, and the
    same number of rows is sampled from each.  All scores are equal, so no selector can prefer one.
    """

    sketches: int = 16
    population: int = 256

    def ask(self, context: Context, n: int) -> Pool:
        drawn = context.samples(self.sketches, max(self.population, 2 * n))
        return Pool(tuple(context.shuffled(drawn)))
