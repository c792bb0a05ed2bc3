"""Run one search on one recorded space and count the trials it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import lgamma
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from ansorpy.api.parts import Parts
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.interfaces import Observer
from ansorpy.schedule.state import State
from ansorpy.search.selectors import SELECTORS
from ansorpy.search.strategies import STRATEGIES
from ansorpy.search.task_search import SearchOptions, TaskSearch
from ansorpy.search.trials import MeasuredTrials
from benchmarks.race.contestant import Contestant
from benchmarks.spaces.grid import Grid, read_grid
from benchmarks.spaces.grid_source import GridRunner, GridSource

__all__ = ["FRACTIONS", "UNIFORM", "Race", "expected", "replayed", "run", "trials_to"]

FRACTIONS = (0.95, 0.99)
"""Fractions of the best program's speed that a search should reach."""

UNIFORM = "uniform"
"""Name for drawing points of the space uniformly, without a model."""


@dataclass(frozen=True)
class Race:
    """One run of a contestant on a recorded space.

    Args:
        round_size: Trials per round; 8 as in a run with a time limit.
        most: Trials after which the search gives up.
    """

    space: Path
    contestant: Contestant
    seed: int
    round_size: int = 8
    most: int = 512


def run(race: Race) -> list[float]:
    """Best time after each trial, relative to the grid's best, until 99 % or *most* trials."""
    source = _source(race.space)
    grid = source.grid
    strategy = STRATEGIES.factory(race.contestant.strategy)
    selector = SELECTORS.one(race.contestant.selector)
    model = Parts(cost_model=race.contestant.cost_model).model_for(grid.task.target)()
    runner = _Counting(GridRunner(source))
    options = SearchOptions(strategy=strategy, selector=selector, seed=race.seed)
    goal_s = grid.best_s / max(FRACTIONS)
    with TemporaryDirectory() as folder, Database(Path(folder) / "race.db") as database:
        trials = MeasuredTrials(runner, database)
        search = TaskSearch(grid.task, source, model, trials, options)
        while len(runner.seconds) < race.most and not search.exhausted:
            search.step(min(race.round_size, race.most - len(runner.seconds)))
            if min(runner.seconds, default=np.inf) <= goal_s:
                break
    trace = np.minimum.accumulate(runner.seconds) / grid.best_s
    return [float(value) for value in trace]


def replayed(race: Race) -> dict[str, object]:
    """The trials to each of :data:`FRACTIONS`, None if it was not reached, and where it improved.

    ``cpu_s`` are the seconds that the search itself computed.
    """
    began = process_time()
    trace = run(race)
    improved = [n for n, value in enumerate(trace) if n == 0 or value < trace[n - 1]]
    return {
        "trials_to": {f"{fraction:g}": trials_to(trace, fraction) for fraction in FRACTIONS},
        "trials": len(trace),
        "cpu_s": process_time() - began,
        "points": [(n + 1, trace[n]) for n in improved if np.isfinite(trace[n])],
    }


def trials_to(trace: Sequence[float], fraction: float) -> int | None:
    """Trials until that *fraction* of the best speed was reached; None if it was not."""
    for trials, value in enumerate(trace, start=1):
        if value <= 1 / fraction:
            return trials
    return None


def expected(grid: Grid, fraction: float, share: float) -> int:
    """Trials after which uniform draws reach *fraction* of the best with probability *share*.

    Exact: the smallest t with ``1 - C(bad, t) / C(points, t) >= share``, without replacement.
    """
    points = len(grid.rows)
    bad = points - int((grid.times <= grid.best_s / fraction).sum())
    missed = [np.exp(_log_choose(bad, t) - _log_choose(points, t)) for t in range(1, bad + 1)]
    enough = np.flatnonzero(1 - np.array([*missed, 0.0]) >= share)
    return int(enough[0]) + 1


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


@cache
def _source(path: Path) -> GridSource:
    return GridSource(read_grid(path))


@dataclass
class _Counting:
    """A runner that records the seconds of every trial, infinite for failures."""

    runner: GridRunner
    seconds: list[float] = field(default_factory=list)

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        results = self.runner.measure(task, candidates, incumbent_s=incumbent_s, observer=observer)
        self.seconds += [result.median_s for result in results]
        return results
