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
    """Breeds generations of programs by their measured speed; the model is not consulted.

    A decision is a gene, and so is the placed sketch.  The first generation is random.  Parents are
    drawn in proportion to their speed from the last generation and the ``elite`` fastest of all.  A
    child takes its placed sketch and the first decisions from one parent, up to a random one, and
    the others from the other parent.  Each gene may then be drawn again.  A generation is bred when
    the one before it has been measured.

    Source: AutoTVM's GATuner (population 100, 3 elite, mutation 0.1).  Woodpecker-DL, arXiv
    2008.04567, searches by such an algorithm too, whose details are not public.  Differs: a
    population of 32, as most runs measure a few hundred programs; a placed sketch mutates to one
    with a stage computed elsewhere; genes that parents of different placed sketches do not share
    are drawn.

    Args:
        population: Programs in a generation.
        elite: Number of fastest programs that stay parents.
        mutation: Probability that a gene is drawn again.
        sketches: Placed sketches of the first generation.
        tries: Children bred for each one wanted, as some are invalid or known.
    """

    population: int = 32
    elite: int = 3
    mutation: float = 0.1
    sketches: int = 16
    tries: int = 4
    _generation: list[Candidate] = field(default_factory=list, init=False, repr=False)
    """Programs measured since the last generation was bred; a score is a measured speed here."""
    _elite: list[Candidate] = field(default_factory=list, init=False, repr=False)
    _children: list[Candidate] = field(default_factory=list, init=False, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        left = [c for c in self._children if c.key not in context.measured]
        if len(left) < n:
            parents = different([*self._generation, *self._elite])
            self._generation = []
            bred = self._bred(parents, context)
            left = different([*left, *bred, *self._random(context, self.population - len(bred))])
        self._children = left
        return Pool(tuple(left))

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        ran = [replace(c, score=1 / result.median_s) for c, result in found if result.ok]
        self._generation += ran
        self._elite = sorted([*self._elite, *ran], key=lambda c: -c.score)[: self.elite]

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

    def _bred(self, parents: Sequence[Candidate], context: Context) -> list[Candidate]:
        """At most ``population`` children of *parents* that have not been measured."""
        found: list[Candidate] = []
        speeds = np.array([parent.score for parent in parents])
        for _ in range(self.tries if parents else 0):
            drawn = context.rng.choice(
                len(parents), size=(self.population, 2), p=speeds / speeds.sum()
            )
            for one, other in drawn:
                child = self._child(parents[one], parents[other], context.rng)
                if child.key not in context.measured and child.sketch.valid(child.row[None])[0]:
                    found.append(child)
            found = different(found)
            if len(found) >= self.population:
                break
        return found[: self.population]

    def _child(self, one: Candidate, other: Candidate, rng: np.random.Generator) -> Candidate:
        """A program with genes of both; it may break a constraint."""
        sketch, table = one.sketch, one.row[None]
        if rng.random() < self.mutation:
            moved = sketch.neighbour(rng)
            if moved is not None:
                sketch, table = moved, moved.adopt(sketch, table, rng)
        space = sketch.space
        genes, others = (
            space.encode(table)[0],
            space.encode(sketch.adopt(other.sketch, other.row[None], rng))[0],
        )
        number = np.arange(len(genes))
        genes = np.where(number < rng.integers(len(genes) + 1), genes, others)
        sizes = np.array([len(d.domain.rows) for d in space.decisions], dtype=np.int64)
        mutated = rng.random(len(genes)) < self.mutation
        genes = np.where(mutated, rng.integers(np.maximum(sizes, 1)), genes)
        return Candidate(sketch, space.decode(genes[None])[0], _UNRANKED)
