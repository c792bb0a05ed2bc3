"""The scheduler that gives every task the same number of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.tasks.progress import TaskProgress

__all__ = ["RoundRobin"]


@dataclass(frozen=True)
class RoundRobin:
    """Chooses the task with the fewest rounds among those alive that affect the objective."""

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> int | None:
        alive = [i for i, task in enumerate(tasks) if task.alive and task.gradient > 0]
        return min(alive, key=lambda i: tasks[i].rounds, default=None)
