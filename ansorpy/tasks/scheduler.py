"""The interface of task schedulers, which decide which task gets the next round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np

from ansorpy.tasks.progress import TaskProgress

__all__ = ["Round", "TaskScheduler", "first_round", "open_tasks"]


@dataclass(frozen=True)
class Round:
    """The next round: the number of its task, and its trials as a fraction of the usual number."""

    task: int
    part: float = 1.0


class TaskScheduler(Protocol):
    """Chooses the task of the next round; each run has its own scheduler, which may keep state.

    While a round is measured, a copy is asked which round of the other tasks may be next.
    """

    @abstractmethod
    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
        """A round of an alive task with positive gradient; None when no task is worth a round."""


def open_tasks(tasks: Sequence[TaskProgress]) -> list[int]:
    """Numbers of the tasks that are alive and affect the objective."""
    return [i for i, task in enumerate(tasks) if task.alive and task.gradient > 0]


def first_round(tasks: Sequence[TaskProgress]) -> Round | None:
    """A round of an open task without a correct program; None if each has one.

    The task with the fewest rounds comes first, and of these the heaviest: time may run out before
    every task has had its first round.
    """
    fresh = [i for i in open_tasks(tasks) if not isfinite(tasks[i].best_s)]
    found = min(
        fresh,
        key=lambda i: (tasks[i].rounds, -tasks[i].gradient * tasks[i].least_s),
        default=None,
    )
    return None if found is None else Round(found)
