"""Whole runs on a simulated machine and clock, whose tasks improve along given curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.bound import roofline_seconds
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import RecordingJournal
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.search.task_search import SearchOptions
from ansorpy.search.transfers import TRANSFERS
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.task_trials import TaskTrials
from ansorpy.tasks.tune import TuneOptions, WeightedTask, tune_tasks
from tests.search.runners import FormulaRunner
from tests.search.small import SAMPLING
from tests.search.tasks import matmul, sampler

__all__ = ["Curve", "CurveRunner", "Ended", "RoundClock", "tuned"]

OPTIONS = TuneOptions(
    SearchOptions(SAMPLING, transfer=TRANSFERS.one("none")), model=AnalyticModel, retime=False
)


@dataclass(frozen=True)
class Curve:
    """How a task improves: ``share`` of the time at the rooflines, and best times above it.

    The first trials take ``first`` times the roofline, many of them ``last`` times.
    """

    share: float
    first: float
    last: float

    def times(self, trials: int) -> float:
        """The best of so many trials, as a multiple of the roofline."""
        return self.last + (self.first - self.last) * 2 / max(trials, 2)


@dataclass
class CurveRunner(FormulaRunner):
    """The n-th program of a task takes the time that its curve has after n trials."""

    curves: Mapping[str, tuple[float, Curve]] = field(default_factory=dict)
    trials: dict[str, int] = field(default_factory=dict)

    def answer(self, task: Task, state: State) -> MeasureResult:
        self.seen.append(task.key)
        least_s, curve = self.curves[task.key]
        self.trials[task.key] = self.trials.get(task.key, 0) + 1
        return MeasureResult(TrialKind.OK, (least_s * curve.times(self.trials[task.key]),))


@dataclass
class RoundClock(RecordingJournal):
    """Every round and every trial takes as long as the plan expects, times ``slower``."""

    database: Database = field(default_factory=Database)
    runner: FormulaRunner = field(default_factory=FormulaRunner)
    slower: float = 1.0
    rounds: dict[object, int] = field(default_factory=dict)

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        super().note(kind, body)
        if kind == "refit":
            self.rounds[body["task"]] = self.rounds.get(body["task"], 0) + 1

    def shown_s(self) -> float:
        rounds = 0.5 * sum(self.rounds.values()) + 0.5 * len(self.rounds)
        return self.slower * (rounds + 0.05 * len(self.runner.seen))

    def moment(self, seconds: float) -> float:
        return inf


@dataclass(frozen=True)
class Ended:
    """A task's trials compared with the plan, its part of the time, and its possible gain."""

    trials: TaskTrials
    share: float
    headroom: float

    @property
    def is_heavy(self) -> bool:
        """Whether it takes over a tenth of the time and could take a fifth less."""
        return self.share > 0.1 and self.headroom > 0.2


def tuned(curves: Sequence[Curve], budget: Budget, slower: float = 1.0) -> list[Ended]:
    """Tune tasks that improve along *curves*."""
    tasks = [matmul(1, 64, 64 + n) for n in range(len(curves))]
    sources = [sampler(task) for task in tasks]
    least = [roofline_seconds(t, s.definitions) for t, s in zip(tasks, sources, strict=True)]
    runner = CurveRunner(
        curves={t.key: (s, c) for t, s, c in zip(tasks, least, curves, strict=True)}
    )
    clock = RoundClock(runner=runner, slower=slower)
    weights = [c.share / s for s, c in zip(least, curves, strict=True)]
    outcomes = tune_tasks(
        [*map(WeightedTask, tasks, sources, weights)],
        budget,
        runner,
        clock.database,
        options=OPTIONS,
        journal=clock,
    ).outcomes
    times = [c.times(o.history.trials) for c, o in zip(curves, outcomes, strict=True)]
    seconds = np.array([curve.share for curve in curves]) * times
    return [
        Ended(outcome.trials, part, 1 - 1 / time)
        for outcome, part, time in zip(outcomes, seconds / seconds.sum(), times, strict=True)
    ]
