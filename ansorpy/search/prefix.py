"""Programs as sequences of decisions: prefixes, which strategies extend one decision at a time.

The sequence is: definition, sketch, placement (factors of rfactors, compute locations), and then
one number after another, the columns of the placed sketch's table.  Decisions that leave no choice
are not part of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ansorpy.cost.programs import Beginning
from ansorpy.rules.placed_sketch import Pair, PartialSketch, PlacedSketch
from ansorpy.schedule.space import Domains, Space, Table, hull
from ansorpy.search.population import Scored, SketchSource, sample_valid, scored_together
from ansorpy.search.strategy import Context

__all__ = ["Decided", "Explored", "Prefix", "begin", "explored"]

Decided = tuple[str, int | str]
"""A decision's name, and what was decided."""


@dataclass(frozen=True, eq=False)
class Prefix(ABC):
    """The first decisions of a program.  ``decided`` identifies it among those of its task."""

    decided: tuple[Decided, ...]

    @property
    @abstractmethod
    def options(self) -> Sequence[Prefix]:
        """The prefixes that are one decision longer; () for a whole program, or if none is left.

        Decisions after which no program is valid are left out as far as bounds show it
        (:meth:`~ansorpy.schedule.space.Space.possible`).
        """

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> tuple[PlacedSketch, Table]:
        """At most *n* valid random programs that begin so, all of one placed sketch."""

    @property
    def beginning(self) -> Beginning | None:
        """The decisions as models see them; None while the sketch is open."""
        return None

    def explore(
        self, n: int, rng: np.random.Generator
    ) -> Sequence[tuple[Prefix, PlacedSketch, Table]]:
        """About *n* random programs that begin so, grouped by the option that they take.

        Options that no program took are left out.  A whole program is its own only option.
        """
        each = -(-n // max(len(self.options), 1))
        drawn = [(option, *option.sample(each, rng)) for option in self.options]
        return [group for group in drawn if len(group[2])]


def begin(source: SketchSource) -> Prefix:
    """The prefix with no decision, from which all programs of *source* can be reached."""
    return _sketches((), source, tuple(source.pairs))


@dataclass(frozen=True, eq=False)
class _Sketches(Prefix):
    """The definition, or the sketch, is still open: it is one of several *pairs*."""

    source: SketchSource
    pairs: tuple[Pair, ...]

    @cached_property
    def options(self) -> Sequence[Prefix]:
        grouped: dict[str, list[Pair]] = {}
        for pair in self.pairs:
            grouped.setdefault(pair.definition, []).append(pair)
        left: dict[Decided, list[Pair]] = {("sketch", p.sketch): [p] for p in self.pairs}
        if len(grouped) > 1:
            left = {("definition", name): pairs for name, pairs in grouped.items()}
        return [
            _sketches((*self.decided, decided), self.source, tuple(pairs))
            for decided, pairs in left.items()
        ]

    def sample(self, n: int, rng: np.random.Generator) -> tuple[PlacedSketch, Table]:
        number = self.pairs[int(rng.integers(len(self.pairs)))].sketch
        return _placing(self.decided, self.source.begin(number)).sample(n, rng)


@dataclass(frozen=True, eq=False)
class _Placing(Prefix):
    """The placement of *partial* is still open."""

    partial: PartialSketch

    @cached_property
    def options(self) -> Sequence[Prefix]:
        return [
            _placing((*self.decided, ("placement", option.decided)), option)
            for option in self.partial.options
        ]

    @property
    def beginning(self) -> Beginning:
        return Beginning(Space(self.partial.state), np.zeros(0, dtype=np.int64))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[PlacedSketch, Table]:
        sketch = self.partial.draw(rng)
        return sketch, sample_valid(sketch, n, rng)


@dataclass(frozen=True, eq=False)
class _Columns(Prefix):
    """The placed *sketch* is decided; *domains* have the numbers that decisions leave open."""

    sketch: PlacedSketch
    domains: Domains

    @cached_property
    def options(self) -> Sequence[Prefix]:
        number = next((n for n, rows in enumerate(self.domains) if len(rows) > 1), None)
        if number is None or self._is_barren:
            return ()
        rows, decision = self.domains[number], self.sketch.space.decisions[number]
        column = next(c for c, values in enumerate(rows.T) if (values != values[0]).any())
        values = np.unique(rows[:, column]).tolist()
        left = [self._with(number, rows[rows[:, column] == value]) for value in values]
        low, high = zip(*map(hull, left), strict=True)
        fits = self.sketch.space.possible(np.array(low), np.array(high))
        name = decision.columns[column]
        return [
            _Columns((*self.decided, (name, value)), self.sketch, domains)
            for value, domains, fit in zip(values, left, fits, strict=True)
            if fit
        ]

    @property
    def _is_barren(self) -> bool:
        """Whether some decision has nothing left to choose."""
        return not all(map(len, self.domains))

    def _with(self, number: int, rows: Table) -> Domains:
        """The domains with only *rows* left for the decision with this number."""
        return (*self.domains[:number], rows, *self.domains[number + 1 :])

    @property
    def beginning(self) -> Beginning:
        low, high = hull(self.domains)
        left = np.flatnonzero(low != high)
        return Beginning(self.sketch.space, low[: left[0]] if len(left) else low)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[PlacedSketch, Table]:
        return self.sketch, sample_valid(self.sketch, n, rng, self.domains)

    def explore(
        self, n: int, rng: np.random.Generator
    ) -> Sequence[tuple[Prefix, PlacedSketch, Table]]:
        sketch, table = self.sample(n, rng)
        if not self.options:
            return [(self, sketch, table[:1])] if len(table) else []
        column = sketch.columns.index(self.options[0].decided[-1][0])
        taken = [(option, table[:, column] == option.decided[-1][1]) for option in self.options]
        return [(option, sketch, table[rows]) for option, rows in taken if rows.any()]


def _sketches(
    decided: tuple[Decided, ...], source: SketchSource, pairs: tuple[Pair, ...]
) -> Prefix:
    """The prefix to which these *pairs* are left; that of a single pair has its placement open."""
    if len(pairs) > 1:
        return _Sketches(decided, source, pairs)
    return _placing(decided, source.begin(pairs[0].sketch))


def _placing(decided: tuple[Decided, ...], partial: PartialSketch) -> Prefix:
    """The prefix at *partial*, whose columns are open if nothing is left to place."""
    if partial.options:
        return _Placing(decided, partial)
    sketch = partial.placed()
    return _Columns(decided, sketch, sketch.space.feasible)


@dataclass(frozen=True)
class Explored:
    """Scored programs that begin with ``prefix`` and take its ``option``."""

    prefix: Prefix
    option: Prefix
    scored: Scored

    @property
    def best(self) -> float:
        """The best score."""
        return float(self.scored.scores.max())


def explored(context: Context, prefixes: Sequence[Prefix], n: int) -> list[Explored]:
    """About *n* random programs of each prefix, grouped by the option taken."""
    found = [
        (prefix, option, sketch, table)
        for prefix in prefixes
        for option, sketch, table in prefix.explore(n, context.rng)
    ]
    tables = [(sketch, table) for _, _, sketch, table in found]
    groups = scored_together(context.task, context.model, tables)
    return [
        Explored(prefix, option, group)
        for (prefix, option, _, _), group in zip(found, groups, strict=True)
    ]
