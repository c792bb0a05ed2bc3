"""The genetic algorithm: it only measures, and gets better at it."""

from __future__ import annotations

import numpy as np

from ansorpy.search.strategies.ga import Genetic
from ansorpy.search.strategies.random import RandomSearch
from tests.search.asking import (
    BowlModel,
    basin,
    context,
    distance_measured,
    finds_the_best,
    measured,
)


def test_it_finds_better_programs_than_drawing_at_random() -> None:
    ratios = [
        distance_measured(Genetic, seed) / distance_measured(RandomSearch, seed)
        for seed in range(2)
    ]
    assert np.mean(ratios) < 0.85


def test_it_finds_the_best_of_ten_thousand_programs() -> None:
    assert finds_the_best(Genetic(), rounds=60)


def test_it_asks_no_model() -> None:
    calls: list[int] = []
    at = context(model=BowlModel(calls=calls))
    measured(Genetic(), at, basin, rounds=8)
    assert not calls
