"""Allocation of a task's trials to its (definition, sketch) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.task import Task
from ansorpy.rules.placed_sketch import Pair
from ansorpy.search.population import SketchSource

__all__ = ["Allocation"]

T = TypeVar("T")


@dataclass
class _Record:
    """Measurements of a pair: number of trials, and the best seconds (infinite if none ran)."""

    trials: int = 0
    best_s: float = float("inf")


class Allocation:
    """Assigns each pair a share of the candidates to generate and measure, by its promise.

    A pair's promise is its best throughput relative to the best pair's, combining the prediction
    with measurements, whose weight grows with its trials (the prediction counts as one trial).
    Shares are proportional to the promise's fourth power plus a bonus for pairs with few trials, as
    the model may be wrong about all of their programs.  A pair gets nothing if the bound on its
    definition's time shows that it cannot match the best program.

    Bounds come from the machine's known rates, scaled down when some program beats its own bound.
    They are also reduced by the share ``doubt``, because rates are measured once and clocks drift.
    """

    sharpness: ClassVar[int] = 4
    curiosity: ClassVar[float] = 0.25
    """Bonus to the weight of an untried pair, divided by the square of one plus its trials."""
    least_promise: ClassVar[float] = 0.05
    """Promise of a pair that has only failed so far, or that the model considers hopeless."""
    doubt: ClassVar[float] = 0.2

    def __init__(self, task: Task, source: SketchSource) -> None:
        self._pairs = tuple(source.pairs)
        self._bounds = {d.name: least_seconds(task, d.dag) for d in source.definitions}
        self._records = {pair: _Record() for pair in self._pairs}

    @property
    def best_s(self) -> float:
        """The best measured time; infinite before the first."""
        return min(record.best_s for record in self._records.values())

    def bound_s(self, pair: Pair) -> float:
        """Least seconds that a program of *pair* can take."""
        return self._bounds[pair.definition]

    def tell(self, measured: Iterable[tuple[Pair, float]]) -> None:
        """Record trials: pairs and seconds, infinite for failures."""
        for pair, seconds in measured:
            record = self._records[pair]
            record.trials += 1
            record.best_s = min(record.best_s, seconds)

    def open(self) -> tuple[Pair, ...]:
        """The pairs that may still contain a program faster than the best."""
        best_s, scale = self.best_s, (1 - self.doubt) * self._scale()
        return tuple(p for p in self._pairs if scale * self.bound_s(p) <= best_s)

    def shares(self, predicted: Mapping[Pair, float]) -> dict[Pair, float]:
        """The share of each open pair, adding up to 1; *predicted* has the best scores so far.

        A pair without a prediction gets nothing, as its space gave no program.
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
        """Yield all *offers* of the pairs in *shares*, interleaved by share.

        Every prefix, together with earlier trials, contains about the right share of each pair.
        """
        given = dict.fromkeys(shares, 0)
        while True:
            left = [pair for pair in shares if given[pair] < len(offers[pair])]
            if not left:
                return
            pair = min(left, key=lambda p: (self._records[p].trials + given[p] + 1) / shares[p])
            yield offers[pair][given[pair]]
            given[pair] += 1

    def _weight(self, pair: Pair, predicted: float) -> float:
        """The pair's unnormalised share; *predicted* is its score relative to the best pair's."""
        record = self._records[pair]
        known = record.trials / (1 + record.trials)
        measured = self.best_s / record.best_s if record.best_s < float("inf") else 0.0
        low = self.least_promise
        promise = float(max(predicted, low) ** (1 - known) * max(measured, low) ** known)
        return promise**self.sharpness + self.curiosity / (1 + record.trials) ** 2

    def _scale(self) -> float:
        """The smallest ratio of a pair's best time to its bound, at most 1."""
        ratios = [
            record.best_s / self.bound_s(pair)
            for pair, record in self._records.items()
            if self.bound_s(pair) > 0
        ]
        return min([1.0, *ratios])
