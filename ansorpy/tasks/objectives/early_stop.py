"""The objective that gives no more trials to tasks that stopped improving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.progress import TaskProgress

__all__ = ["EarlyStop"]


@dataclass(frozen=True)
class EarlyStop(WeightedSum):
    """The weighted sum, ignoring each task after ``trials`` consecutive trials without a gain.

    A task without a correct program counts.  A network is done when all of its tasks are done.
    Paper: OSDI'20 §6.1, f4.
    """

    trials: int = 48

    def gradient(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> Floats:
        moving = [not isfinite(task.best_s) or task.since_gain < self.trials for task in tasks]
        return super().gradient(networks, tasks) * np.array(moving, dtype=np.float64)
