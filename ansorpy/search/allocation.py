"""How a task's trials are shared out among its (definition, sketch) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.task import Task
from ansorpy.rules.structure import Pair
from ansorpy.search.population import StructureSource

__all__ = ["Allocation"]

T = TypeVar("T")


@dataclass
class _Record:
    """What was measured of a pair: trials, and the best seconds, infinite if none ran."""

    trials: int = 0
    best_s: float = float("inf")


class Allocation:
    """Gives each pair a share of what is bred and measured, by what it promises.

    A pair promises its best throughput relative to the best pair's: what the model predicts, and
    what was measured of it, whose weight grows with its trials (the prediction counts as one).
    Shares go with the fourth power of that; a pair hardly tried has something added, since the
    model may be wrong about all of its programs.  A pair whose definition cannot be as fast as the
    best program, by its bound, gets none.

    The bounds are those of the machine as it is known, scaled down when some program beats its own.
    They count less by the share ``doubt``: rates were measured in one moment, and clocks drift.
    """

    sharpness: ClassVar[int] = 4
    curiosity: ClassVar[float] = 0.25
    """Added to an untried pair's promise to the fourth; with each trial it falls as its square."""
    least_promise: ClassVar[float] = 0.05
    """Of a pair that failed so far, or that the model thinks hopeless."""
    doubt: ClassVar[float] = 0.2

    def __init__(self, task: Task, source: StructureSource) -> None:
        self._pairs = tuple(source.pairs)
        self._bounds = {d.name: least_seconds(task, d.dag) for d in source.definitions}
        self._records = {pair: _Record() for pair in self._pairs}

    @property
    def best_s(self) -> float:
        """The best time measured; infinite before."""
        return min(record.best_s for record in self._records.values())

    def tell(self, measured: Iterable[tuple[Pair, float]]) -> None:
        """Take note of trials: pairs and seconds, infinite for failures."""
        for pair, seconds in measured:
            record = self._records[pair]
            record.trials += 1
            record.best_s = min(record.best_s, seconds)

    def open(self) -> tuple[Pair, ...]:
        """The pairs that may still hold a better program than the best."""
        best_s, scale = self.best_s, (1 - self.doubt) * self._scale()
        return tuple(p for p in self._pairs if scale * self._bounds[p.definition] <= best_s)

    def shares(self, predicted: Mapping[Pair, float]) -> dict[Pair, float]:
        """The share of each open pair, 1 in all; *predicted* holds the best scores so far.

        A pair without a prediction, whose space gave no program, gets none.
        """
        top = max(predicted.values(), default=0.0)
        weights = {
            pair: self._weight(pair, predicted[pair] / top if top > 0 else 1.0)
            for pair in self.open()
            if pair in predicted
        }
        total = sum(weights.values())
        return {pair: weight / total for pair, weight in weights.items()}

    def in_turns(
        self, offers: Mapping[Pair, Sequence[T]], shares: Mapping[Pair, float]
    ) -> Iterator[T]:
        """All *offers* of the pairs in *shares*, so that every beginning, with the trials there
        were, holds of each pair about its share."""
        given = dict.fromkeys(shares, 0)
        while True:
            left = [pair for pair in shares if given[pair] < len(offers[pair])]
            if not left:
                return
            pair = min(left, key=lambda p: (self._records[p].trials + given[p] + 1) / shares[p])
            yield offers[pair][given[pair]]
            given[pair] += 1

    def _weight(self, pair: Pair, predicted: float) -> float:
        """*predicted* is the score relative to the best pair's."""
        record = self._records[pair]
        known = record.trials / (1 + record.trials)
        measured = self.best_s / record.best_s if record.best_s < float("inf") else 0.0
        low = self.least_promise
        promise = float(max(predicted, low) ** (1 - known) * max(measured, low) ** known)
        return promise**self.sharpness + self.curiosity / (1 + record.trials) ** 2

    def _scale(self) -> float:
        """At most 1: how far below their bounds programs were measured."""
        ratios = [
            record.best_s / self._bounds[pair.definition]
            for pair, record in self._records.items()
            if self._bounds[pair.definition] > 0
        ]
        return min([1.0, *ratios])
