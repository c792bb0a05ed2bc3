"""How a task's trials are shared out among its (definition, sketch) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.task import Task
from ansorpy.rules.structure import Pair
from ansorpy.search.population import StructureSource

__all__ = ["Allocation", "in_turns"]

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
    Shares go with the fourth power, so that half the speed still is one trial in seventeen.  A
    pair whose definition cannot be as fast as the best program, by its bound, gets none.

    The bounds are those of the machine's description, scaled down when some program beats its own.
    """

    sharpness = 4
    least_promise = 0.05

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
        best_s, scale = self.best_s, self._scale()
        return tuple(p for p in self._pairs if scale * self._bounds[p.definition] <= best_s)

    def shares(self, predicted: Mapping[Pair, float]) -> dict[Pair, float]:
        """The share of each open pair, 1 in all; *predicted* holds the best scores so far.

        A pair without a prediction, whose space gave no program, gets none.
        """
        top = max(predicted.values(), default=0.0)
        promises = {
            pair: self._promise(pair, predicted[pair] / top if top > 0 else 1.0) ** self.sharpness
            for pair in self.open()
            if pair in predicted
        }
        total = sum(promises.values())
        return {pair: promise / total for pair, promise in promises.items()}

    def _promise(self, pair: Pair, predicted: float) -> float:
        record = self._records[pair]
        known = record.trials / (1 + record.trials)
        measured = self.best_s / record.best_s if record.best_s < float("inf") else 0.0
        low = self.least_promise
        return float(max(predicted, low) ** (1 - known) * max(measured, low) ** known)

    def _scale(self) -> float:
        """At most 1: how far below their bounds programs were measured."""
        ratios = [
            record.best_s / self._bounds[pair.definition]
            for pair, record in self._records.items()
            if self._bounds[pair.definition] > 0
        ]
        return min([1.0, *ratios])


def in_turns(lists: Mapping[Pair, Sequence[T]], shares: Mapping[Pair, float]) -> Iterator[T]:
    """All elements of *lists*; every beginning holds of each about its share."""
    taken = dict.fromkeys(lists, 0)
    while True:
        left = [pair for pair, items in lists.items() if taken[pair] < len(items)]
        left = [pair for pair in left if shares.get(pair, 0.0) > 0]
        if not left:
            return
        pair = min(left, key=lambda p: (taken[p] + 1) / shares[p])
        yield lists[pair][taken[pair]]
        taken[pair] += 1
