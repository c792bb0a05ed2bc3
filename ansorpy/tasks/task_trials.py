"""Each task's trials beside those planned for it, and why they differ much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.tasks.progress import TaskProgress

__all__ = ["TaskTrials", "trials_of_tasks"]

_FEW = 8
"""A difference of this many trials, half of a usual round, needs no explanation."""
_NEAR = 0.2
"""A task has little left to gain if at most this fraction of its time is above its roofline."""


@dataclass(frozen=True)
class TaskTrials:
    """Trials of one task in a run.

    Args:
        planned: Its planned share of the trials that the run made.
        got: The trials it got.
        why: Why it got less than half or more than twice the plan; empty otherwise.
    """

    planned: int
    got: int
    why: str = ""


def trials_of_tasks(tasks: Sequence[TaskProgress], ended: Sequence[str]) -> list[TaskTrials]:
    """The trials of each of *tasks* at the end of a run.

    *ended* has the reason why a task could get no more trials in this run, and an empty text for
    the others.
    """
    got = [task.trials - task.earlier for task in tasks]
    total_s = sum(task.objective_s for task in tasks) or 1.0
    found = []
    for task, trials, reason in zip(tasks, got, ended, strict=True):
        planned, part = round(task.share * sum(got)), task.objective_s / total_s
        why = ""
        if abs(trials - planned) > _FEW and trials < planned / 2:
            why = reason or _why_less(task, part)
        elif abs(trials - planned) > _FEW and trials > 2 * planned:
            why = _why_more(task, part)
        found.append(TaskTrials(planned, trials, why))
    return found


def _why_less(task: TaskProgress, part: float) -> str:
    if not task.gradient:
        return "the objective no longer depends on it"
    if task.earlier:
        return f"had {task.earlier} trials before"
    if task.headroom <= _NEAR:
        return f"within {task.headroom:.0%} of its roofline"
    if part < 0.8 * task.share:
        return _drift(task, part)
    return "other tasks promised larger gains"


def _why_more(task: TaskProgress, part: float) -> str:
    if part > 1.25 * task.share:
        return _drift(task, part)
    return f"{task.headroom:.0%} of its time is above its roofline"


def _drift(task: TaskProgress, part: float) -> str:
    """How the task's *part* of the time differs from the plan."""
    return f"takes {_percent(part)} of the time, planned for {_percent(task.share)}"


def _percent(part: float) -> str:
    return f"{part:.1%}" if part < 0.1 else f"{part:.0%}"
