"""The interface of search strategies."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from ansorpy.cost.protocol import CostModel
from ansorpy.ir.task import Task
from ansorpy.measure.result import MeasureResult
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.population import (
    Candidate,
    Key,
    Pool,
    Scored,
    SketchSource,
    different,
    sample_valid,
    top,
)

__all__ = ["Context", "Preparing", "Results", "Strategy", "fastest"]

Results: TypeAlias = Sequence[tuple[Candidate, MeasureResult]]
"""Candidates that were measured, and what was found."""


@dataclass
class Context:
    """Everything that a strategy may use; it has no access to the machine."""

    task: Task
    source: SketchSource
    model: CostModel
    rng: np.random.Generator
    measured: set[Key] = field(default_factory=set)
    """Keys of the measured candidates; :meth:`note` adds to them."""

    @property
    def measured_of(self) -> Counter[str]:
        """Number of measured candidates of each placed sketch, by its key."""
        return Counter(sketch for sketch, _ in self.measured)

    def samples(self, sketches: int, rows: int) -> list[tuple[PlacedSketch, Table]]:
        """Random valid programs of *sketches* new placed sketches, about *rows* in all."""
        drawn = self.source.draw(sketches, self.rng)
        each = -(-rows // len(drawn))
        return [(sketch, sample_valid(sketch, each, self.rng)) for sketch in drawn]

    def shuffled(self, tables: Iterable[tuple[PlacedSketch, Table]]) -> list[Candidate]:
        """The new programs of *tables* in random order, without asking the model."""
        made = [Candidate(sketch, row) for sketch, table in tables for row in table]
        order = self.rng.permutation(len(made))
        return different(self.new(made[at] for at in order))

    def new(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those of *candidates* that have not been measured."""
        return [c for c in candidates if c.key not in self.measured]

    def some(self, groups: Iterable[Scored], n: int) -> tuple[Candidate, ...]:
        """At most *n* random candidates of *groups* that have not been measured."""
        rows = [(group, row) for group in groups for row in range(len(group))]
        picked: dict[Key, Candidate] = {}
        for at in self.rng.permutation(len(rows)):
            if len(picked) == n:
                break
            group, row = rows[at]
            for candidate in self.new(group.rows(np.array([row])).candidates()):
                picked.setdefault(candidate.key, candidate)
        return tuple(picked.values())

    def pool(self, found: Iterable[Scored], sampled: Iterable[Scored], n: int) -> Pool:
        """The pool of the best new candidates *found*, and of random ones of those *sampled*."""
        return Pool(tuple(top(found, 2 * n, self.measured)), self.some(sampled, 2 * n))

    def note(self, candidates: Iterable[Candidate]) -> None:
        """Mark *candidates* as measured."""
        self.measured |= {candidate.key for candidate in candidates}


@runtime_checkable
class Preparing(Protocol):
    """A strategy that can do part of its next :meth:`Strategy.ask` without the last results."""

    def prepare(self, context: Context, n: int) -> None:
        """Prepare to be asked for *n* candidates, while the last ones are being measured.

        It is called in a thread of its own.  Until it returns, nothing else uses the strategy, the
        model, or the random numbers of *context*; then the results are told.
        """


class Strategy(Protocol):
    """Proposes candidates and receives their results."""

    @abstractmethod
    def ask(self, context: Context, n: int) -> Pool:
        """A pool of at least *n* candidates to pick from, fewer if it finds no others.

        A call takes at most about a second, however large the space.  A pool that is too small
        because the time ran out sets ``more``.  Otherwise, one without new candidates ends the
        search.  With several tasks, it is called in a thread while another task's programs are
        built; nothing else uses the strategy, the model or *context* meanwhile.
        """

    def tell(self, found: Results) -> None:
        """Receive results of candidates from this strategy or from the transfer source.

        Strategies that derive from this class may leave it out: results reach the model anyway.
        """
        return


def fastest(
    known: Sequence[tuple[float, Candidate]], found: Results, n: int
) -> list[tuple[float, Candidate]]:
    """The *n* fastest of the candidates *known* and the correct ones *found*, with seconds."""
    timed = [(result.median_s, candidate) for candidate, result in found if result.ok]
    return sorted([*known, *timed], key=lambda pair: pair[0])[:n]
