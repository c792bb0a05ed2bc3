"""Evolution strategies: gradient ascent on the model's score, estimated from random steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Table
from ansorpy.search.points import decoded, positions
from ansorpy.search.population import Pool, Scored, sample_valid, score_all
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Tuna"]


@dataclass
class Tuna(Strategy):
    """Moves a point in each placed sketch towards better scores of the model.

    A program is a point: by column, the rank of its value, scaled to 0..1.  A step draws
    ``population`` normal deviations from the point, scores the valid programs nearest to them, and
    moves the point along the deviations, weighted by the ranks of their scores.  The best programs
    of all steps are offered.  The strategy remembers nothing and learns from no measurement; with
    ``--cost-model analytic``, none is used until the programs are chosen.

    Paper: Tuna, arXiv 2104.14641; evolution strategies: Salimans et al., arXiv 1703.03864.  No
    source is public, so the sizes here are ours.  Differs: the model is a part of its own.

    Args:
        sketches: Placed sketches per round.
        population: Deviations per step, placed sketch.
        sigma: Standard deviation of the steps.
        rate: How far a point moves along the estimated gradient.
    """

    sketches: int = 8
    population: int = 64
    steps: int = 12
    sigma: float = 0.15
    rate: float = 0.1

    def ask(self, context: Context, n: int) -> Pool:
        drawn = context.source.draw(self.sketches, context.rng)
        tables = [(s, sample_valid(s, self.population, context.rng)) for s in drawn]
        first = [g for g in score_all(context.task, context.model, tables) if len(g)]
        found = list(first)
        points = [positions(g.sketch.space, g.table[[int(g.scores.argmax())]])[0] for g in first]
        for _ in range(self.steps):
            sketches = [g.sketch for g in first]
            noise = [context.rng.standard_normal((self.population, len(p))) for p in points]
            proposed = [
                decoded(s.space, p + self.sigma * e)
                for s, p, e in zip(sketches, points, noise, strict=True)
            ]
            groups, values = _scored(sketches, proposed, context)
            points = [
                np.clip(p + self.rate / self.sigma * _gradient(e, v), 0.0, 1.0)
                for p, e, v in zip(points, noise, values, strict=True)
            ]
            found += groups
        return context.pool(found, first, n)


def _scored(
    sketches: Sequence[PlacedSketch], tables: Sequence[Table], context: Context
) -> tuple[list[Scored], list[Floats]]:
    """The valid rows with their scores, and the value of every row, least for invalid ones."""
    valid = [sketch.valid(table) for sketch, table in zip(sketches, tables, strict=True)]
    kept = [(s, t[v]) for s, t, v in zip(sketches, tables, valid, strict=True)]
    groups = score_all(context.task, context.model, kept)
    values = []
    for group, mask in zip(groups, valid, strict=True):
        value = np.full(len(mask), -np.inf)
        value[mask] = group.scores
        values.append(value)
    return groups, values


def _gradient(noise: Floats, values: Floats) -> Floats:
    """The direction of better values: the mean deviation, weighted by ranks from -0.5 to 0.5."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.linspace(-0.5, 0.5, len(values))
    equal = values == values.min()
    ranks[equal] = ranks[equal].mean()
    found: Floats = ranks @ noise / len(values)
    return found
