"""Coordinate descent from the best measured program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, variance

import numpy as np

from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.population import Candidate, Key, Pool, score
from ansorpy.search.strategies.evolution import Evolution
from ansorpy.search.strategies.sampling import Sampling
from ansorpy.search.strategies.sequence import Then
from ansorpy.search.strategy import Context, Results

__all__ = ["Droplet", "evolution_droplet", "random_droplet"]


@dataclass
class Droplet:
    """Measures the neighbours of the best program and moves to one that is clearly faster.

    A neighbour differs in one decision by one step
    (:meth:`~ansorpy.schedule.space.Space.neighbours`).  If these do not fill a round, those two
    steps away follow, then three, and so on.  It has nothing to offer until a program has run, nor
    once everything around the best is measured, so combine it with a strategy that finds starting
    points (:class:`~ansorpy.search.strategies.sequence.Then`).

    Paper: "Explore as a Storm, Exploit as a Raindrop", arXiv 2406.20037.  Source: TVM #14683,
    #17104.  Differs: values do not wrap around at the ends of a domain; a tile's factors move
    between its levels, so no step leaves the domain; the model orders equally distant neighbours;
    the test of means assumes a normal distribution.

    Args:
        radius: Maximum number of steps along a decision.
        certainty: How many standard errors faster a program must be before the search moves to it,
            so that it does not follow noise (1.65 is one chance in twenty).
    """

    radius: int = 8
    certainty: float = 1.65
    _centre: Candidate | None = field(default=None, repr=False)
    _times: tuple[float, ...] = field(default=(), repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        if self._centre is None:
            return Pool(())
        offers: dict[Key, Candidate] = {}
        for radius in range(1, self.radius + 1):
            if len(offers) >= n:
                break
            for candidate in context.new(self._around(self._centre, radius, context)):
                offers.setdefault(candidate.key, candidate)
        return Pool(tuple(offers.values()))

    def tell(self, found: Results) -> None:
        for candidate, result in found:
            if result.ok and (self._centre is None or self._is_faster(result.seconds)):
                self._centre, self._times = candidate, result.seconds

    def _around(self, centre: Candidate, radius: int, context: Context) -> list[Candidate]:
        """Valid programs *radius* steps from *centre*, highest score first."""
        sketch = centre.sketch
        table = np.concatenate([*_steps(sketch, centre.row, radius), centre.row[None][:0]])
        table = table[sketch.valid(table)]
        scored = score(context.task, context.model, sketch, table).candidates()
        return sorted(scored, key=lambda c: -c.score)

    def _is_faster(self, times: Sequence[float]) -> bool:
        """True when the mean of *times* is significantly below the centre's."""
        gain = fmean(self._times) - fmean(times)
        if min(len(times), len(self._times)) < 2:
            return gain > 0
        error = sqrt(variance(times) / len(times) + variance(self._times) / len(self._times))
        return gain > self.certainty * error


def _steps(sketch: PlacedSketch, row: Table, radius: int) -> Iterator[Table]:
    for decision in sketch.space.decisions:
        yield sketch.space.neighbours(row, decision.name, radius)


def random_droplet() -> Then:
    """Coordinate descent from the best of a sampled round; when it ends, samples again."""
    return Then(Sampling(), 1, Droplet())


def evolution_droplet() -> Then:
    """Evolution for 96 trials, then coordinate descent from the best, then evolution again.

    Paper: arXiv 2406.20037.  Differs: it explores 300 programs and ends with the descent; 96 suit
    the trials of one task among many.
    """
    return Then(Evolution(), 96, Droplet())
