"""Estimate the trials and time of each task before a run starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ansorpy.cost.bound import roofline_seconds
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.rules.algorithms.base import definitions
from ansorpy.rules.presets import Preset, preset_for
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.pace import (
    FIRST_ROUND_S,
    LEAST_ROUND,
    RETIME_S,
    ROUND_S,
    TRIAL_S,
    USUAL_ROUND,
)

__all__ = ["Before", "PlannedTask", "TrialPlan", "before", "expected_shares", "plan"]


@dataclass(frozen=True)
class Before:
    """Results of earlier runs for a task: trials, and seconds of its fastest correct program."""

    trials: int = 0
    best_s: float | None = None


def before(database: Database, tasks: Iterable[Task]) -> dict[str, Before]:
    """Results of earlier runs in *database* for each of *tasks*, by key."""
    found = {}
    for task in tasks:
        best = database.best(task.key)
        found[task.key] = Before(database.trials(task.key), None if best is None else best.median_s)
    return found


@dataclass(frozen=True)
class PlannedTask:
    """One task of the plan.

    Args:
        weight: Calls in all networks, multiplied by their weights.
        alike: Number of tasks of the run with the same structure, including this one.
        least_s: Roofline bound of its fastest definition: no program can take fewer seconds.
        before: Its results in earlier runs.
        share: Its fraction of the expected total time; see :func:`expected_shares`.
        trials: Trials it can expect from this run.
    """

    task: Task
    weight: float
    alike: int
    least_s: float
    before: Before
    share: float
    trials: int


@dataclass(frozen=True)
class TrialPlan:
    """The tasks, the total number of trials, and the seconds they may take."""

    tasks: tuple[PlannedTask, ...]
    trials: int
    seconds: float


def plan(
    weights: Mapping[Task, float],
    budget: Budget,
    known: Mapping[str, Before] | None = None,
    preset: Preset | None = None,
) -> TrialPlan:
    """Estimate what *budget* allows for the tasks, given what is *known* from earlier runs.

    The whole time limit is used unless every task stops improving earlier.  *preset* has the rules
    of the search; None stands for the rules of each task's target.
    """
    tasks = list(weights)
    earlier = [(known or {}).get(task.key, Before()) for task in tasks]
    least = [_least_s(task, preset or preset_for(task.target)) for task in tasks]
    shares = expected_shares([*weights.values()], least, [found.best_s for found in earlier])
    trials = _trials(budget, earlier)
    classes = [task.class_key for task in tasks]
    rows = []
    for task, least_s, share, found in zip(tasks, least, shares, earlier, strict=True):
        each = trials
        if budget.trials_per_task is not None:
            each = min(max(budget.trials_per_task - found.trials, 0), trials)
        promised = min(max(round(trials * share), LEAST_ROUND), each)
        alike = classes.count(task.class_key)
        rows.append(PlannedTask(task, weights[task], alike, least_s, found, share, promised))
    seconds = _fixed_s(len(tasks)) + trials * _trial_s(budget, len(tasks))
    if budget.time_limit_s is not None:
        seconds = min(seconds, budget.time_limit_s)
    return TrialPlan(tuple(rows), trials, seconds)


def expected_shares(
    weights: Sequence[float], least_s: Sequence[float], best_s: Sequence[float | None]
) -> list[float]:
    """Fractions of the expected total time, and of the trials, for tasks called *weights* times.

    Tasks of earlier runs are expected to take their best time; the others their roofline bound
    times the median ratio of best time to bound over those tasks.
    """
    ratios = [best / least for best, least in zip(best_s, least_s, strict=True) if best and least]
    usual = median(ratios) if ratios else 1.0
    seconds = [
        weight * (best or usual * least)
        for weight, least, best in zip(weights, least_s, best_s, strict=True)
    ]
    total = sum(seconds)
    return [part / total if total else 1 / len(seconds) for part in seconds]


def _least_s(task: Task, preset: Preset) -> float:
    ways = definitions(task.dag, preset.algorithms, task.target, task.precision)
    return roofline_seconds(task, ways)


def _trials(budget: Budget, earlier: list[Before]) -> int:
    """Trials of this run; earlier trials count towards the limits on trials."""
    limits, tasks = [], len(earlier)
    if budget.trials is not None:
        limits.append(max(budget.trials - sum(e.trials for e in earlier), 0))
    if budget.trials_per_task is not None:
        limits.append(sum(max(budget.trials_per_task - e.trials, 0) for e in earlier))
    if budget.time_limit_s is not None:
        left_s = budget.time_limit_s - _fixed_s(tasks)
        limits.append(max(int(left_s / _trial_s(budget, tasks)), tasks))
    return min(limits)


def _fixed_s(tasks: int) -> float:
    """Seconds for first rounds and for re-timing the finalists."""
    return tasks * (FIRST_ROUND_S + RETIME_S)


def _trial_s(budget: Budget, tasks: int) -> float:
    """Seconds of a trial, including its share of a round's overhead."""
    return TRIAL_S + ROUND_S / min(budget.round_size(tasks), USUAL_ROUND)
