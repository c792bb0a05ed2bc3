"""Bayesian optimisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from ansorpy.arrays import Floats
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.search.gaussian_process import Points, Posterior, posterior
from ansorpy.search.population import Candidate
from ansorpy.search.strategies import bayes_opt
from ansorpy.search.strategies.annealing import Annealing
from ansorpy.search.strategies.bayes_opt import ACQUISITIONS, BayesOpt, Portfolio, encoded
from ansorpy.search.strategies.random import RandomSearch
from ansorpy.search.strategy import Strategy
from tests.search.asking import context, measured, ok

SMALL = partial(BayesOpt, initial=12, sketches=2, candidates=600, designs=50)


def seconds(candidate: Candidate) -> float:
    """A smooth valley in the ranks of the decisions; three of ten programs crash."""
    x = encoded([candidate]).x[0]
    return np.inf if _digest(candidate) < 0.3 else float(np.exp(((x - 0.6) ** 2).sum()))


def _digest(candidate: Candidate) -> float:
    """A number in 0..1 that depends on the candidate alone."""
    weights = np.cos(np.arange(1, len(candidate.row) + 1) * 12.9898)
    return float(abs(np.sin(candidate.row @ weights) * 43758.5453) % 1)


def search(
    make: Callable[[], Strategy], seed: int, trials: int = 48, n: int = 8
) -> tuple[list[Candidate], list[float]]:
    """The candidates measured in rounds of *n*, and their seconds."""
    at, strategy = context(seed), make()
    tried: list[Candidate] = []
    while len(tried) < trials:
        picked = list(strategy.ask(at, n).best[:n])
        at.note(picked)
        times = [seconds(c) for c in picked]
        crash = MeasureResult(TrialKind.CRASH, reason="crash")
        strategy.tell(
            [(c, ok(s) if s < np.inf else crash) for c, s in zip(picked, times, strict=True)]
        )
        tried += picked
    return tried, [seconds(c) for c in tried]


def test_it_beats_random_search_and_annealing_though_many_programs_crash() -> None:
    def mean_best(make: Callable[[], Strategy]) -> float:
        return float(np.mean([min(search(make, seed)[1]) for seed in range(2)]))

    found = mean_best(SMALL)
    random = partial(RandomSearch, sketches=2, population=64)
    assert found < mean_best(random)
    assert found < mean_best(partial(Annealing, sketches=2, chains=32, steps=2))


def test_no_program_is_measured_twice_and_failures_do_not_enter_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observed: list[int] = []

    def counting(points: Points, values: Floats, candidates: Points, length: float) -> Posterior:
        observed.append(len(points))
        return posterior(points, values, candidates, length)

    monkeypatch.setattr(bayes_opt, "posterior", counting)
    tried, times = search(SMALL, 1, 40)
    assert len({c.key for c in tried}) == len(tried)
    correct = np.cumsum(np.isfinite(times))[7:-1:8]
    assert observed == [n for n in correct if n >= 12]


def test_all_offers_are_scored_by_the_speed_that_the_process_expects() -> None:
    at, strategy = context(), SMALL()
    measured(strategy, at, lambda c: 1e-3, rounds=3)
    pool = strategy.ask(at, 8)
    assert pool.best and pool.random
    assert all(abs(c.score - 1e3) < 1.0 for c in (*pool.best, *pool.random))


def test_exploration_falls_as_the_process_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    factors: list[float] = []

    def watching(name: str) -> Callable[..., Any]:
        plain = ACQUISITIONS[name]

        def function(mean: Floats, deviation: Floats, goal: float, explore: float) -> Floats:
            factors.append(explore)
            return plain(mean, deviation, goal, explore)

        return function

    watched = {name: watching(name) for name in ACQUISITIONS}
    monkeypatch.setattr(bayes_opt, "ACQUISITIONS", watched)
    search(SMALL, 2, 64)
    first, last = factors[0], factors[-1]
    assert 0 < last < 0.9 * first < 0.9


def test_functions_take_turns_until_one_is_clearly_better() -> None:
    portfolio = Portfolio()
    assert list(portfolio.turns(4)) == ["ei", "poi", "lcb", "ei"]
    for _ in range(5):
        for name, took in (("ei", 1.0), ("poi", 1.02), ("lcb", 0.98)):
            portfolio.tell(name, took)
    assert portfolio.active == ["ei", "poi", "lcb"]
    for _ in range(30):
        for name, took in (("ei", 1.0), ("poi", 1.0), ("lcb", 0.6)):
            portfolio.tell(name, took)
    assert portfolio.active == ["lcb"] and list(portfolio.turns(2)) == ["lcb", "lcb"]


def test_a_poor_function_leaves() -> None:
    portfolio = Portfolio(margin=0.3)
    for _ in range(8):
        for name, took in (("ei", 1.0), ("poi", 1.8), ("lcb", 1.0)):
            portfolio.tell(name, took)
    assert portfolio.active == ["ei", "lcb"]


@dataclass
class Noting(Portfolio):
    """Notes whose choices took which seconds."""

    told: list[float] = field(default_factory=list)

    def tell(self, name: str, seconds: float) -> None:
        self.told.append(seconds)


def test_only_choices_of_the_last_round_count() -> None:
    portfolio = Noting()
    at, strategy = context(), SMALL(_portfolio=portfolio)
    measured(strategy, at, lambda c: 1.0, rounds=2)
    assert portfolio.told == []
    earlier, chosen = strategy.ask(at, 8).best, strategy.ask(at, 8).best
    passed = [c for c in earlier if c.key not in {other.key for other in chosen}]
    strategy.tell([*((c, ok(2.0)) for c in passed), *((c, ok(3.0)) for c in chosen)])
    assert passed and portfolio.told == [3.0] * 8


def test_the_best_mean_is_chosen_without_exploration_and_doubt_with_it() -> None:
    mean, deviation = np.array([0.0, -1.0, 0.2]), np.array([0.1, 0.1, 1.5])
    choices = {
        (name, explore): int(np.argmax(function(mean, deviation, -0.5 - explore, explore)))
        for name, function in ACQUISITIONS.items()
        for explore in (0.0, 1.0)
    }
    assert [choices[name, 0.0] for name in ACQUISITIONS] == [1, 1, 1]
    assert [choices[name, 1.0] for name in ACQUISITIONS] == [2, 2, 2]
