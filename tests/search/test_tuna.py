"""Evolution strategies under a model."""

from __future__ import annotations

import numpy as np

from ansorpy.search.points import decoded, positions
from ansorpy.search.population import sample_valid
from ansorpy.search.strategies.tuna import Tuna
from tests.search.asking import context


def test_a_program_is_the_nearest_to_its_own_point() -> None:
    at = context()
    [sketch, *_] = at.source.draw(1, at.rng)
    table = sample_valid(sketch, 50, at.rng)
    points = positions(sketch.space, table)
    assert (points >= 0).all() and (points <= 1).all()
    np.testing.assert_array_equal(decoded(sketch.space, points), table)
    noisy = decoded(sketch.space, points + at.rng.normal(0, 5, points.shape))
    assert sketch.space.within(noisy).all()


def test_it_climbs_further_than_as_many_samples_do() -> None:
    """Same placed sketches and as many scores, all of the static model: nothing is measured."""

    def best(strategy: Tuna, seed: int) -> float:
        return max(c.score for c in strategy.ask(context(seed, n=384), 8).best)

    gains = [
        best(Tuna(sketches=4, population=16, steps=8), s)
        / best(Tuna(sketches=4, population=16 * 9, steps=0), s)
        for s in range(2)
    ]
    assert np.mean(gains) > 1.0


def test_it_keeps_nothing_between_rounds() -> None:
    strategy = Tuna(sketches=2, population=16, steps=2)
    before = repr(strategy), vars(strategy).copy()
    strategy.ask(context(), 8)
    assert (repr(strategy), vars(strategy)) == before
