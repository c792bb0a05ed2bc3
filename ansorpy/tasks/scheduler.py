"""What a run asks of a task scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ansorpy.tasks.standing import Standing

__all__ = ["TaskScheduler"]


class TaskScheduler(Protocol):
    """Chooses the task of the next round."""

    def next(self, tasks: Sequence[Standing], rng: np.random.Generator) -> int | None:
        """Number of a living task of some slope; None when none is worth a round."""
