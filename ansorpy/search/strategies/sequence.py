"""A strategy that runs two others in sequence."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansorpy.search.population import Pool, different
from ansorpy.search.strategy import Context, Results, Strategy

__all__ = ["Then"]


@dataclass
class Then:
    """Uses the first strategy for some trials, then the second while it offers candidates.

    Both receive every result.  If the second cannot fill a round, the first fills it, and may find
    a new starting point for the second: ``Then(Evolution(), 300, Droplet())``.

    Args:
        trials: Number of results after which the second strategy is used.
    """

    first: Strategy
    trials: int
    second: Strategy
    _told: int = field(default=0, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        pool = self.second.ask(context, n) if self._told >= self.trials else Pool(())
        lacking = n - len(pool.best)
        if lacking <= 0:
            return pool
        added = self.first.ask(context, lacking)
        best = different([*pool.best, *added.best])
        return Pool(tuple(best), (*pool.random, *added.random), pool.more or added.more)

    def tell(self, found: Results) -> None:
        self._told += len(found)
        self.first.tell(found)
        self.second.tell(found)
