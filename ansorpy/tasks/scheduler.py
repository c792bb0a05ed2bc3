"""The interface of task schedulers, which decide which task gets the next round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ansorpy.tasks.progress import TaskProgress

__all__ = ["TaskScheduler"]


class TaskScheduler(Protocol):
    """Chooses the task of the next round."""

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> int | None:
        """Number of an alive task with positive gradient; None when no task is worth a round."""
