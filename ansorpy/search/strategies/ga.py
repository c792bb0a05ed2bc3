"""A genetic algorithm that only measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.population import Candidate, Pool, different, sample_valid
from ansorpy.search.strategy import Context, Results, fastest

__all__ = ["Genetic"]


@dataclass
class Genetic:
    """Breeds programs from the fastest measured ones; the model is not consulted.

    The first programs are random.  Later, the parents are the ``population`` fastest programs so
    far.  Each of a child's two parents is the fastest of ``tournament`` drawn ones.  A child has
    the placed sketch of the first, or one with a stage computed elsewhere.  It is crossed with
    probability ``crossover``, and then has each decision from either parent; decisions that it
    shares with no parent are drawn.  At last it is mutated once.

    Source: AutoTVM's GATuner (measured speed is the fitness, and nothing is measured twice).
    Woodpecker-DL, arXiv 2008.04567, searches by such an algorithm too, whose details are not
    public: tournaments and uniform crossover are our choice.  Differs: children are bred round by
    round from the fastest programs so far, not from a last generation of a hundred, as most runs
    measure a few hundred programs in all.  Mutations are those of the rules, as in evolution:
    drawing a decision again mostly breaks a constraint.

    Args:
        first: Number of random programs measured before any are bred.
        sketches: Placed sketches that these come from.
        tries: Children bred for each one wanted, as some are invalid or known.
        moving: Probability that a stage is computed elsewhere.
    """

    population: int = 8
    tournament: int = 3
    crossover: float = 0.7
    first: int = 16
    sketches: int = 16
    tries: int = 8
    moving: float = 0.1
    _fastest: list[tuple[float, Candidate]] = field(default_factory=list, init=False, repr=False)
    """Seconds and candidates of the fastest programs, the fastest first."""
    _trials: int = field(default=0, init=False, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        ready = self._trials >= self.first and self._fastest
        bred = self._bred(context, n) if ready else []
        drawn = context.source.draw(self.sketches, context.rng)
        fresh = context.shuffled([(s, sample_valid(s, 2 * n, context.rng)) for s in drawn])[: 2 * n]
        return Pool(tuple(different([*bred, *fresh[: 2 * n - len(bred)]])), tuple(fresh))

    def tell(self, found: Results) -> None:
        self._trials += len(found)
        self._fastest = fastest(self._fastest, found, self.population)

    def _bred(self, context: Context, n: int) -> list[Candidate]:
        """At most *n* children that have not been measured."""
        rng, parents = context.rng, [candidate for _, candidate in self._fastest]
        drawn = rng.integers(len(parents), size=(2, self.tries * n, self.tournament))
        ones, others = drawn.min(axis=2)
        bred: list[tuple[PlacedSketch, Table]] = []
        for one in np.unique(ones):
            partners = [parents[at] for at in others[ones == one]]
            sketch, table = self._children(parents[one], partners, rng)
            bred.append((sketch, table[sketch.valid(table)]))
        return context.shuffled(bred)[:n]

    def _children(
        self, one: Candidate, others: Sequence[Candidate], rng: np.random.Generator
    ) -> tuple[PlacedSketch, Table]:
        """A child of *one* with each of *others*; some may break a constraint."""
        sketch, table = one.sketch, np.tile(one.row, (len(others), 1))
        moved = sketch.neighbour(rng) if rng.random() < self.moving else None
        if moved is not None:
            sketch, table = moved, moved.adopt(sketch, table, rng)
        partners = np.concatenate([sketch.adopt(o.sketch, o.row[None], rng) for o in others])
        crossed = rng.random(len(others)) < self.crossover
        for at in sketch.space.slices.values():
            taken = np.flatnonzero(crossed & (rng.random(len(others)) < 0.5))
            table[taken, at] = partners[taken, at]
        return sketch, sketch.mutate(table, rng)
