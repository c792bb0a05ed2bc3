"""The objective that gives no more trials to tasks that stopped improving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.progress import TaskProgress

__all__ = ["EarlyStop"]


@dataclass(frozen=True)
class EarlyStop(WeightedSum):
    """The weighted sum, ignoring each task after ``trials`` consecutive trials without a gain.

    A network is done when all of its tasks are done.  Paper: OSDI'20 §6.1, f4.
    """

    trials: int = 48

    def gradient(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> Floats:
        moving = np.array([task.since_gain < self.trials for task in tasks], dtype=np.float64)
        return super().gradient(networks, tasks) * moving
