"""One strategy after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansorpy.measure.result import MeasureResult
from ansorpy.search.population import Candidate, Pool
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Then"]


@dataclass
class Then:
    """The first strategy for some trials, then the second as long as it has something to offer.

    Both hear of every result.  While the second has nothing, the first goes on, and may find it a
    new start: ``Then(Evolution(), 300, Droplet())``.

    Args:
        trials: Results after which the second strategy is asked; it hears of all before.
    """

    first: Strategy
    trials: int
    second: Strategy
    _told: int = field(default=0, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        if self._told >= self.trials:
            pool = self.second.ask(context, n)
            if pool.best or pool.random:
                return pool
        return self.first.ask(context, n)

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        self._told += len(found)
        self.first.tell(found)
        self.second.tell(found)
