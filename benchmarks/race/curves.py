"""Task schedulers replayed on recorded learning curves.

A recorded run has the best time of each of its tasks after each trial.  A scheduler is replayed by
giving it rounds of these trials, so schedulers are compared without tuning, and all end where the
recording ends.  None can be given more trials of a task than were recorded, so runs are recorded
evenly, by ``round_robin``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.bound import roofline_seconds
from ansorpy.errors import UsageError
from ansorpy.evaluation.page.recorded_run import RecordedRun, recorded_run
from ansorpy.measure.records.database import Database
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.tasks.objective import TunedNetwork, is_known, latency_s, with_gradients
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.trial_plan import expected_shares

__all__ = ["Recording", "Step", "TaskCurve", "read", "reached", "replay"]

ROUND = 16
"""Trials of a usual round."""


@dataclass(frozen=True)
class TaskCurve:
    """How one task improved.

    Args:
        best_s: Its best seconds after each trial; infinite until a program was correct.
        seconds: The seconds of tuning that each trial took.
        weight: Calls in all networks.
        least_s: Roofline bound of its programs.
    """

    best_s: Floats
    seconds: Floats
    weight: float = 1.0
    flops: float = 1.0
    class_key: str = ""
    least_s: float = 0.0


@dataclass(frozen=True)
class Recording:
    """The curves of a run's tasks and the networks that call these."""

    name: str
    curves: tuple[TaskCurve, ...]
    networks: tuple[TunedNetwork, ...]

    def end_s(self) -> float:
        """The latency with all recorded trials."""
        return _latency_s(self.networks, [_progress(c, [len(c.best_s)]) for c in self.curves])


@dataclass(frozen=True)
class Step:
    """The latency after a round, with the trials and seconds spent so far."""

    trials: int
    seconds: float
    latency_s: float


def read(path: Path) -> Recording:
    """The curves of the last run in the database *path* that searched.

    Raises:
        UsageError: There is no such run, or one of its tasks has no trial.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist", hint="record one: ansorpy tune --db FILE")
    with Database(path) as database:
        run = recorded_run(database)
    curves = tuple(_curve(run, number) for number in range(len(run.tasks)))
    if not all(len(curve.best_s) for curve in curves):
        raise UsageError(f"{path} has tasks without a trial", hint="tune for longer")
    return Recording(path.stem, curves, run.networks)


def _curve(run: RecordedRun, number: int) -> TaskCurve:
    times, seconds, before_s = [], [], 0.0
    for m in run.measurements:
        took_s, before_s = max(m.at_s - before_s, 0.0), m.at_s
        if m.task == number and not m.is_again:
            times.append(m.record.median_s if m.record.ok and m.record.median_s else inf)
            seconds.append(took_s)
    task = run.tasks[number]
    return TaskCurve(
        np.minimum.accumulate(np.array(times, dtype=np.float64)),
        np.array(seconds, dtype=np.float64),
        weight=run.request.tasks[number].weight,
        flops=task.flops,
        class_key=task.class_key,
        least_s=roofline_seconds(task, SketchSampler(task).definitions),
    )


def replay(recording: Recording, scheduler: str, seed: int = 0, size: int = ROUND) -> list[Step]:
    """The latency after each round of the named *scheduler*, from when all tasks have a program.

    A usual round has *size* trials, or those that were recorded if fewer are left.
    """
    chooser, rng = SCHEDULERS.one(scheduler), np.random.default_rng(seed)
    curves, objective = recording.curves, WeightedSum()
    shares = expected_shares(
        [c.weight for c in curves], [c.least_s for c in curves], [None] * len(curves)
    )
    ends: list[list[int]] = [[] for _ in curves]
    steps: list[Step] = []
    while True:
        tasks = [_progress(c, e, s) for c, e, s in zip(curves, ends, shares, strict=True)]
        latency_s = _latency_s(recording.networks, tasks)
        if latency_s < inf:
            spent = [task.trials for task in tasks]
            seconds = sum(float(c.seconds[:n].sum()) for c, n in zip(curves, spent, strict=True))
            steps.append(Step(sum(spent), seconds, latency_s))
        chosen = chooser.next(with_gradients(tasks, objective, recording.networks), rng)
        if chosen is None:
            return steps
        at = chosen.task
        end = tasks[at].trials + ceil(chosen.part * size)
        ends[at].append(min(end, len(curves[at].best_s)))


def reached(steps: Sequence[Step], end_s: float, within: float) -> Step | None:
    """The first of *steps* whose latency is within that fraction of *end_s*."""
    return next((step for step in steps if step.latency_s <= (1 + within) * end_s), None)


def _progress(curve: TaskCurve, ends: Sequence[int], share: float = 0.0) -> TaskProgress:
    """The task after rounds that ended with these numbers of trials."""
    trials = ends[-1] if ends else 0
    return TaskProgress(
        best_after=[float(curve.best_s[end - 1]) for end in ends],
        trials_after=ends,
        flops=curve.flops,
        alive=trials < len(curve.best_s),
        class_key=curve.class_key,
        least_s=curve.least_s,
        cost=max(float(curve.seconds[:trials].mean()), 1e-9) if trials else 1.0,
        share=share,
    )


def _latency_s(networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> float:
    """The weighted latency of *networks*; infinite while one of them cannot run."""
    if not all(is_known(network, tasks) for network in networks):
        return inf
    return sum(network.weight * latency_s(network, tasks) for network in networks)
