"""The scheduler that extrapolates learning curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.tasks.learning_curves import CurvePosterior, Sampler, log_power
from ansorpy.tasks.pace import USUAL_ROUND
from ansorpy.tasks.scheduler import TaskScheduler
from ansorpy.tasks.schedulers.dynatune import DynaTune
from ansorpy.tasks.schedulers.round_robin import RoundRobin
from tests.tasks.progress import progress
from tests.tasks.simulated import visits

SHORT = Sampler(steps=60, burn_in=30, thin=5, drawn=256)


def power(a: float, b: float, c: float) -> Callable[[int], float]:
    """Best times of a task whose throughput follows a log-power curve."""

    def seconds(trials: int) -> float:
        [[found]] = log_power(np.array([[a, b, c]]), np.array([float(trials)]))
        return float(1 / found)

    return seconds


def rounds_needed(scheduler: TaskScheduler, limit: int = 80) -> int:
    """Rounds until a network of uneven tasks has 95 % of its final speed, at most *limit*."""
    curves = [power(1.0, 4.0, -1.8), power(9.0, 2.0, -1.5), *[power(30.0, 1.0, -1.0)] * 4]
    spent, goal_s = [0] * len(curves), sum(best(1 << 40) for best in curves) / 0.95
    for number, (at, n) in enumerate(visits(scheduler, curves, [1.0] * len(curves), limit), 1):
        spent[at] += n
        if all(spent) and sum(best(n) for best, n in zip(curves, spent, strict=True)) <= goal_s:
            return number
    return limit


def test_it_needs_fewer_rounds_than_taking_turns() -> None:
    assert rounds_needed(DynaTune(sampler=SHORT)) < 0.9 * rounds_needed(RoundRobin())


class Counting(Sampler):
    """Counts its fits."""

    fits: list[int] = []

    def fit(self, x: Floats, y: Floats, most: float, rng: np.random.Generator) -> CurvePosterior:
        self.fits.append(len(x))
        return super().fit(x, y, most, rng)


def test_only_the_task_that_ran_is_fitted_again() -> None:
    sampler = Counting(steps=40, burn_in=20)
    scheduler, rng = DynaTune(sampler=sampler), np.random.default_rng(0)
    scheduler.next([progress(3.0), progress(4.0, 3.0), progress(9.0)], rng)
    assert sampler.fits == [1, 2, 1]
    scheduler.next([progress(3.0), progress(4.0, 3.0, 2.0), progress(9.0)], rng)
    assert sampler.fits[3:] == [3]


@dataclass(frozen=True)
class Asked(CurvePosterior):
    """Notes after how many trials it is asked for."""

    noted: list[float]

    def at(self, trials: float) -> Floats:
        self.noted.append(trials)
        return super().at(trials)


class Noting(Sampler):
    noted: list[float] = []

    def fit(self, x: Floats, y: Floats, most: float, rng: np.random.Generator) -> CurvePosterior:
        return Asked(super().fit(x, y, most, rng).samples, self.noted)


def test_the_next_round_is_expected_to_be_as_long_as_those_of_this_run() -> None:
    sampler = Noting(steps=40, burn_in=20)
    tasks = [
        progress(4.0, 3.0),
        progress(3.0, trials_after=[500], earlier=500),
        progress(3.0, 2.0, trials_after=[500, 532], earlier=500),
    ]
    DynaTune(sampler=sampler).next(tasks, np.random.default_rng(0))
    assert sampler.noted == [16, 24, 500, 500 + USUAL_ROUND, 532, 564]


def test_tasks_that_still_improve_and_those_with_few_rounds_come_first() -> None:
    def chosen(*curves: list[float]) -> int:
        found = DynaTune(c=0.1, sampler=SHORT).next(
            [progress(*c) for c in curves], np.random.default_rng(1)
        )
        assert found is not None
        return found.task

    flat, steep = [4.0] * 12, list(np.geomspace(8.0, 4.0, 12))
    assert chosen(flat, steep) == 1
    assert chosen([4.0] * 12, [4.0] * 2) == 1


def test_the_same_seed_gives_the_same_rounds() -> None:
    curves = [power(1.0, 3.0, -1.0), power(2.0, 2.0, -1.0)]
    found = [visits(DynaTune(sampler=SHORT), curves, [1.0, 1.0], 12) for _ in range(2)]
    assert found[0] == found[1]
