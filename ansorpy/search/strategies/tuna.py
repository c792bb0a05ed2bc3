"""Evolution strategies: gradient ascent on the model's score, estimated from random steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.cost.nest_view import Floats
from ansorpy.measure.result import MeasureResult
from ansorpy.rules.placed_sketch import PlacedSketch
from ansorpy.schedule.space import Space, Table
from ansorpy.search.population import Candidate, Pool, Scored, sample_valid, score_all, top
from ansorpy.search.strategy import Context

__all__ = ["Tuna", "decoded", "positions"]


@dataclass
class Tuna:
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
        best = top(found, 2 * n, context.measured)
        return Pool(tuple(best), context.some(first, 2 * n))

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        """Do nothing: results affect the search only through the model."""


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


def positions(space: Space, table: Table) -> Floats:
    """The rows of *table* as points: by column, the rank of its value, scaled to 0..1."""
    found = np.empty(table.shape)
    for decision in space.decisions:
        columns = space.slices[decision.name]
        found[:, columns] = _ranks(decision.domain.rows, table[:, columns])
    return found


def decoded(space: Space, points: Floats) -> Table:
    """The row nearest to each point, decision by decision; constraints are not applied."""
    table = np.empty(points.shape, dtype=np.int64)
    for decision in space.decisions:
        columns, rows = space.slices[decision.name], decision.domain.rows
        places = _ranks(rows, rows)
        distance = ((points[:, None, columns] - places) ** 2).sum(axis=2)
        table[:, columns] = rows[distance.argmin(axis=1)]
    return table


def _ranks(domain: Table, part: Table) -> Floats:
    """By column, the rank of each value among those of *domain*, scaled to 0..1."""
    found = np.empty(part.shape)
    for number, column in enumerate(domain.T):
        values = np.unique(column)
        found[:, number] = np.searchsorted(values, part[:, number]) / max(len(values) - 1, 1)
    return found
