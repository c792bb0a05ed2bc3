"""What a run is about to do, as far as it can be told before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansorpy.cost.bound import least_seconds
from ansorpy.ir.task import Task
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.pace import FIRST_X, RETIME_S, ROUND_S, TRIAL_S, USUAL_ROUND

__all__ = ["Plan", "PlannedTask", "plan"]


@dataclass(frozen=True)
class PlannedTask:
    """One task of the plan.

    Args:
        weight: Calls in all networks, times their weights.
        alike: Tasks of the run that have its structure, itself included.
        least_s: Seconds that no program of it can beat, by a roofline.
        share: Its part of the total, if every task ran at its roofline.
        trials: What it may expect.
    """

    task: Task
    weight: float
    alike: int
    least_s: float
    share: float
    trials: int


@dataclass(frozen=True)
class Plan:
    """The tasks, the trials of all, and the seconds they may take."""

    tasks: tuple[PlannedTask, ...]
    trials: int
    seconds: float


def plan(weights: Mapping[Task, float], budget: Budget) -> Plan:
    """What *budget* is likely to buy for the tasks, when nothing is known of them yet.

    Under a time limit all of it is used, unless every task stops improving before.
    """
    tasks = list(weights)
    least = [least_seconds(task, task.dag) for task in tasks]
    total_s = sum(w * s for w, s in zip(weights.values(), least, strict=True))
    shares = [
        w * s / total_s if total_s else 1 / len(tasks)
        for w, s in zip(weights.values(), least, strict=True)
    ]
    trials = _trials(budget, len(tasks))
    each = budget.trials_per_task or trials
    classes = [task.class_key for task in tasks]
    rows = tuple(
        PlannedTask(
            task, weights[task], classes.count(task.class_key), s, share,
            min(max(round(trials * share), min(2, each)), each),
        )
        for task, s, share in zip(tasks, least, shares, strict=True)
    )  # fmt: skip
    seconds = _fixed_s(len(tasks)) + trials * _trial_s(budget, len(tasks))
    if budget.time_limit_s is not None:
        seconds = min(seconds, budget.time_limit_s)
    return Plan(rows, trials, seconds)


def _trials(budget: Budget, tasks: int) -> int:
    limits = [] if budget.trials is None else [budget.trials]
    if budget.trials_per_task is not None:
        limits.append(budget.trials_per_task * tasks)
    if budget.time_limit_s is not None:
        left_s = budget.time_limit_s - _fixed_s(tasks)
        limits.append(max(int(left_s / _trial_s(budget, tasks)), tasks))
    return min(limits)


def _fixed_s(tasks: int) -> float:
    """First rounds, and timing the finalists again."""
    return tasks * (FIRST_X * ROUND_S + RETIME_S)


def _trial_s(budget: Budget, tasks: int) -> float:
    """Seconds of a trial and of its share of a round."""
    return TRIAL_S + ROUND_S / min(budget.round_size(tasks), USUAL_ROUND)
