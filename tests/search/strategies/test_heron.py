"""Heron: children inherit what matters and are all valid."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.schedule.space import Table
from ansorpy.search.population import Scored, different, sample_valid
from ansorpy.search.strategies.evolution import crossover
from ansorpy.search.strategies.heron import Heron, important, offspring
from tests.search.asking import context
from tests.search.tasks import matmul


def drawn(rng: np.random.Generator) -> PlacedSketch:
    return SketchSampler(matmul(128, 96, 64)).place(0, rng)


def test_all_children_are_valid(rng: np.random.Generator) -> None:
    sketch = drawn(rng)
    one, other = (sample_valid(sketch, 500, rng) for _ in range(2))
    keys = list(range(len(sketch.space.decisions) // 2))
    children = offspring(sketch.space, one, other, keys, rng)
    assert len(children) > 450
    assert sketch.valid(children).all() and sketch.space.within(children).all()
    crossed = sketch.mutate(crossover(sketch.space, one, other, rng), rng)
    assert not sketch.valid(crossed).all(), "what a plain genetic algorithm would lose"


def test_children_have_a_parents_value_in_all_important_decisions_but_one(
    rng: np.random.Generator,
) -> None:
    sketch = drawn(rng)
    parents = sample_valid(sketch, 2, rng)
    keys = [0, 1, 2]
    one, other = (np.repeat(parents[n][None], 60, axis=0) for n in (0, 1))
    slices = list(sketch.space.slices.values())
    for child in offspring(sketch.space, one, other, keys, rng):
        inherited = [
            any((child[slices[key]] == parent[slices[key]]).all() for parent in parents)
            for key in keys
        ]
        assert sum(inherited) >= len(keys) - 1


def test_the_decision_that_decides_the_score_is_important(rng: np.random.Generator) -> None:
    sketch = drawn(rng)
    table = sample_valid(sketch, 300, rng)
    for number, at in enumerate(sketch.space.slices.values()):
        group = Scored(sketch, table, np.log2(table[:, at].prod(axis=1) + 1.0))
        assert number in important(group, 0.34)


def test_constraints_are_solved_where_no_sample_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    at = context(n=128)

    def bad(sketch: PlacedSketch, n: int, rng: np.random.Generator) -> Table:
        """Rows of the space that break a constraint."""
        rows = sketch.space.sample(64 * n, rng)
        rows = rows[~sketch.valid(rows)]
        return rows[rng.integers(len(rows), size=n)]

    constrained = [
        s for s in at.source.draw(8, at.rng) if not s.valid(s.space.sample(64, at.rng)).all()
    ]
    monkeypatch.setattr(PlacedSketch, "sample", bad)
    monkeypatch.setattr(at.source, "draw", lambda *_: constrained)
    pool = Heron(sketches=2, population=32, parents=16, generations=1).ask(at, 8)
    assert pool.best and all(c.sketch.space.contains(c.row) for c in pool.best)


@pytest.mark.parametrize("predicted", [0.0, 1.0])
def test_all_first_offers_may_come_from_one_source(predicted: float) -> None:
    at = context()
    pool = Heron(2, population=32, parents=16, generations=1, predicted=predicted).ask(at, 8)
    if predicted:
        scores = [c.score for c in pool.best[:16]]
        assert scores == sorted(scores, reverse=True)
    else:
        drawn = [c.key for c in different(pool.random)]
        assert [c.key for c in pool.best[: len(drawn)]] == drawn
