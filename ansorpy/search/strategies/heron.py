"""The constraint-based genetic algorithm: all offspring are valid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Space, Table
from ansorpy.search.population import (
    Candidate,
    Pool,
    Scored,
    best_groups,
    different,
    merged,
    roulette,
    sample_valid,
    score_all,
    top,
)
from ansorpy.search.strategy import Context, Results, fastest

__all__ = ["Heron", "important", "offspring"]

_CHOICES = 16
"""Number of values among which an open decision of a child is drawn, at random from its domain."""


@dataclass
class Heron:
    """Evolves constraint problems instead of programs, so that no child is invalid.

    A child is a random solution of the space's constraints in which the important decisions each
    have the value of one of the parents, but for one of them, which is free (the mutation).
    A decision is important if its value explains much of the variance of the population's scores.

    Paper: Heron (ASPLOS 2023).  Source: IPRC-ICT/Heron (population 200, 5 generations, 32 parents,
    60 % of the measured programs by prediction, the others by roulette).  Differs: a population for
    each placed sketch, whose compute locations are no variables; a generation has 64 children, each
    of two parents drawn for it, where Heron pairs its 32 parents at random for 200 children; half
    of the decisions are important where Heron has 14 %, as our spaces have ten decisions and
    Heron's hundreds of variables; they are found from the scores, because our models do not take
    decisions as inputs.

    Args:
        sketches: Placed sketches per round; those with the best programs stay for the next.
        population: Programs of all placed sketches.
        parents: Pairs of programs drawn by roulette in each generation, of all placed sketches.
        important: Share of the decisions that children inherit.
        predicted: Share of the offers that are the best by prediction.
    """

    sketches: int = 8
    renewed: int = 3
    population: int = 200
    parents: int = 64
    generations: int = 5
    important: float = 0.5
    predicted: float = 0.6
    _kept: list[tuple[PlacedSketch, Table]] = field(default_factory=list, repr=False)
    """The populations of the most promising placed sketches."""
    _measured: list[tuple[float, Candidate]] = field(default_factory=list, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        groups = self._started(context)
        if not groups:
            return Pool(())
        found = list(groups)
        for _ in range(self.generations):
            groups = self._next(groups, context)
            found += groups
        kept = best_groups(groups, max(self.sketches - self.renewed, 1))
        self._kept = [(group.sketch, group.table) for group in kept]
        best = top(found, 2 * n, context.measured)
        others = context.new(c for group in groups for c in group.candidates())
        if not others:
            return Pool(tuple(best))
        scores = np.array([c.score for c in others])
        drawn = roulette(scores - scores.min(), 2 * n, context.rng)
        mixed = _mixed(best, [others[at] for at in drawn], self.predicted)
        return Pool(tuple(mixed), tuple(others[at] for at in drawn))

    def tell(self, found: Results) -> None:
        self._measured = fastest(self._measured, found, self.parents)

    def _started(self, context: Context) -> list[Scored]:
        """The populations of kept sketches, the best measured programs, and new samples."""
        tables: dict[str, list[Table]] = {}
        sketches: dict[str, PlacedSketch] = {}
        for sketch, table in self._kept:
            sketches[sketch.key] = sketch
            tables.setdefault(sketch.key, []).append(table)
        for _, candidate in self._measured:
            if len(sketches) < self.sketches or candidate.sketch.key in sketches:
                sketches.setdefault(candidate.sketch.key, candidate.sketch)
                tables.setdefault(candidate.sketch.key, []).append(candidate.row[None])
        missing = max(self.sketches - len(sketches), self.renewed)
        for sketch in context.source.draw(missing, context.rng):
            sketches.setdefault(sketch.key, sketch)
        each = -(-self.population // len(sketches))
        for sketch in sketches.values():
            sampled = sample_valid(sketch, each, context.rng, sketch.space.domains)
            tables.setdefault(sketch.key, []).append(sampled)
        joined = [(s, np.unique(np.concatenate(tables[s.key]), axis=0)) for s in sketches.values()]
        scored = score_all(context.task, context.model, joined)
        return [merged([group], group.sketch, each) for group in scored if len(group)]

    def _next(self, groups: Sequence[Scored], context: Context) -> list[Scored]:
        """The best of *groups* and their children, as many of each placed sketch as before."""
        rng, born = context.rng, []
        each = -(-self.parents // len(groups))
        for group in groups:
            weights = group.scores - group.scores.min()
            one, other = (group.table[roulette(weights, each, rng)] for _ in range(2))
            keys = important(group, self.important)
            born.append((group.sketch, offspring(group.sketch.space, one, other, keys, rng)))
        children = score_all(context.task, context.model, born)
        return [
            merged([group, new], group.sketch, max(len(group), each))
            for group, new in zip(groups, children, strict=True)
        ]


def important(group: Scored, share: float) -> list[int]:
    """The numbers of the *share* of the decisions that explain most of the scores' variance."""
    slices = list(group.sketch.space.slices.values())
    explained = [_explained(group.table[:, at], group.scores) for at in slices]
    wanted = round(share * len(slices))
    return sorted(range(len(slices)), key=lambda number: -explained[number])[:wanted]


def _explained(values: Table, scores: Floats) -> float:
    """The part of the variance of *scores* that lies between rows of different *values*."""
    _, group = np.unique(values, axis=0, return_inverse=True)
    count = np.bincount(group)
    means = np.bincount(group, weights=scores) / count
    return float(np.sum(count * (means - scores.mean()) ** 2))


def offspring(
    space: Space, one: Table, other: Table, keys: Sequence[int], rng: np.random.Generator
) -> Table:
    """Valid children of the parents in equal rows, which inherit the decisions *keys* but one."""
    free = rng.choice(np.array(keys), len(one)) if len(keys) else np.full(len(one), -1)
    choices = []
    for number, (rows, at) in enumerate(zip(space.domains, space.slices.values(), strict=True)):
        allowed = rows[rng.integers(len(rows), size=(len(one), _CHOICES))]
        if number in keys:
            inherits = free != number
            parents = np.stack([one[inherits, at], other[inherits, at]], axis=1)
            allowed[inherits] = np.tile(parents, (1, _CHOICES // 2, 1))
        choices.append(allowed)
    return space.complete(choices, rng)


def _mixed(best: Sequence[Candidate], drawn: Sequence[Candidate], share: float) -> list[Candidate]:
    """Both in turn, so that of any beginning *share* is the best; none twice."""
    order = [((at + 1) / share if share > 0 else inf, c) for at, c in enumerate(best)]
    order += [((at + 1) / (1 - share) if share < 1 else inf, c) for at, c in enumerate(drawn)]
    return different(c for _, c in sorted(order, key=lambda pair: pair[0]))
