"""A genetic algorithm that only measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ansorpy.measure.result import MeasureResult
from ansorpy.search.population import Candidate, Pool, sample_valid
from ansorpy.search.selector import different
from ansorpy.search.strategy import Context

__all__ = ["Genetic"]

_UNRANKED = 1.0


@dataclass
class Genetic:
    """Breeds programs from the fastest measured ones; the model is not consulted.

    A decision is a gene, and so is the placed sketch.  The first generation is random.  Later, the
    parents are the ``population`` fastest programs so far.  Each of a child's two parents is the
    fastest of ``tournament`` drawn ones.  A child has the placed sketch of one of them; it is
    crossed with probability ``crossover``, and then has each gene from either.  About one of its
    genes is drawn again.

    Source: AutoTVM's GATuner (measured speed is the fitness, and nothing is measured twice).
    Woodpecker-DL, arXiv 2008.04567, searches by such an algorithm too, whose details are not
    public: tournaments, uniform crossover and one mutation a child are our choice.  Differs:
    children are bred round by round from the fastest programs so far, not from a last generation of
    a hundred, as most runs measure a few hundred programs in all.  A placed sketch mutates to one
    with a stage computed elsewhere; genes that it shares with no parent are drawn.

    Args:
        first: Number of random programs measured before any are bred.
        sketches: Placed sketches that these come from.
        tries: Number of times that a round's children are bred, as some are invalid or known.
    """

    population: int = 8
    tournament: int = 3
    crossover: float = 0.7
    first: int = 16
    sketches: int = 16
    tries: int = 4
    _parents: list[Candidate] = field(default_factory=list, init=False, repr=False)
    """The fastest programs, fastest first; a score is a measured speed here."""
    _trials: int = field(default=0, init=False, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        ready = self._trials >= self.first and self._parents
        bred = self._bred(context, n) if ready else []
        fresh = self._random(context, 2 * n)
        return Pool(tuple(different([*bred, *fresh[: 2 * n - len(bred)]])), tuple(fresh))

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        self._trials += len(found)
        ran = [replace(c, score=1 / result.median_s) for c, result in found if result.ok]
        fastest = sorted([*self._parents, *ran], key=lambda c: -c.score)
        self._parents = fastest[: self.population]

    def _random(self, context: Context, n: int) -> list[Candidate]:
        """At most *n* random programs that have not been measured."""
        if n <= 0:
            return []
        drawn = context.source.draw(self.sketches, context.rng)
        made = [
            Candidate(sketch, row, _UNRANKED)
            for sketch in drawn
            for row in sample_valid(sketch, n, context.rng)
        ]
        shuffled = [made[at] for at in context.rng.permutation(len(made))]
        return different(c for c in shuffled if c.key not in context.measured)[:n]

    def _bred(self, context: Context, n: int) -> list[Candidate]:
        """At most *n* children that have not been measured."""
        found: list[Candidate] = []
        for _ in range(self.tries * n):
            if len(found) == n:
                break
            drawn = context.rng.integers(len(self._parents), size=(2, self.tournament))
            one, other = (self._parents[at] for at in drawn.min(axis=1))
            child = self._child(one, other, context.rng)
            if child.key not in context.measured and child.sketch.valid(child.row[None])[0]:
                found = different([*found, child])
        return found

    def _child(self, one: Candidate, other: Candidate, rng: np.random.Generator) -> Candidate:
        """A program with genes of both; it may break a constraint."""
        sketch, row, space = one.sketch, one.row[None], one.sketch.space
        crossed = rng.random() < self.crossover
        if rng.random() < 1 / (1 + len(space.decisions)):
            moved = sketch.neighbour(rng)
            if moved is not None:
                sketch, row, space = moved, moved.adopt(sketch, row, rng), moved.space
        genes = space.encode(row)[0]
        if crossed:
            others = space.encode(sketch.adopt(other.sketch, other.row[None], rng))[0]
            genes = np.where(rng.random(len(genes)) < 0.5, genes, others)
        sizes = np.array([len(d.domain.rows) for d in space.decisions], dtype=np.int64)
        mutated = rng.random(len(genes)) < 1 / (1 + len(genes))
        genes = np.where(mutated, rng.integers(sizes), genes)
        return Candidate(sketch, space.decode(genes[None])[0], _UNRANKED)
