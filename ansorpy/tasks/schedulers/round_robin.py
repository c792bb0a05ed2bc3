"""The scheduler that gives every task the same number of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.scheduler import Round, open_tasks

__all__ = ["RoundRobin"]


@dataclass(frozen=True)
class RoundRobin:
    """Chooses the task with the fewest rounds among those alive that affect the objective."""

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
        found = min(open_tasks(tasks), key=lambda i: tasks[i].rounds, default=None)
        return None if found is None else Round(found)
