"""Parts of a network that can be computed in several ways: which way leads, which get trials.

A way's time is the sum of its tasks' times.  A way that is not the fastest is tuned as long as
its time may still fall below the leader's; after that, its tasks get no more trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansorpy.tasks.progress import TaskProgress

__all__ = ["Either"]

Floats = npt.NDArray[np.float64]

TRIED = 0.5
"""Weight of the calls of a way that is slower than the leader but may still win: a gain in it
matters only once it wins."""

SETTLED = 16
"""Trials before which a task's best time does not tell its final one: the first two programs of
a matmul of BERT's attention took 5 ms, the best of 60 took 0.03 ms."""

UNIT = 8
"""After ``n`` times this many trials a task is assumed to become faster by at most one part in
``n + 1``, as in the gradient scheduler (OSDI'20 §6.2)."""


@dataclass(frozen=True)
class Either:
    """Alternative ways, each with its calls of every task of the run; one of them is enough."""

    ways: tuple[tuple[float, ...], ...]

    def seconds(self, tasks: Sequence[TaskProgress]) -> Floats:
        """Seconds of each way; infinite while one of its tasks has no correct program."""
        return _sums(self.ways, [task.best_s for task in tasks])

    def is_known(self, tasks: Sequence[TaskProgress]) -> bool:
        """True when one of the ways has a correct program for each of its tasks."""
        return bool(np.isfinite(self.seconds(tasks)).any())

    def leader(self, tasks: Sequence[TaskProgress]) -> Floats:
        """Calls of the fastest way, or of the first while none is complete."""
        return np.array(self.ways[int(self.seconds(tasks).argmin())], dtype=np.float64)

    def claims(self, tasks: Sequence[TaskProgress]) -> Floats:
        """Calls as weighted for assigning trials: the leader's in full, the others' in part.

        While no way is complete, all that may still become complete have equal parts.
        """
        ways, seconds = np.array(self.ways, dtype=np.float64), self.seconds(tasks)
        hoped = _sums(self.ways, [_hoped_s(task) for task in tasks])
        leader = int(seconds.argmin())
        if not np.isfinite(seconds[leader]):
            shares = np.isfinite(hoped) / max(np.isfinite(hoped).sum(), 1)
        else:
            shares = np.where(hoped < seconds[leader], TRIED, 0.0)
            shares[leader] = 1.0
        claimed: Floats = shares @ ways
        return claimed


def _sums(ways: Sequence[Sequence[float]], seconds: Sequence[float]) -> Floats:
    """Calls times seconds, summed for each way; tasks it does not call are ignored."""
    calls = np.array(ways, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        each = np.where(calls > 0, calls * np.array(seconds), 0.0)
    total: Floats = each.sum(axis=1)
    return total


def _hoped_s(task: TaskProgress) -> float:
    """Least seconds the task may still reach; infinite if abandoned without a program."""
    if not np.isfinite(task.best_s):
        return task.least_s if task.alive else float("inf")
    if not task.alive:
        return task.best_s
    if task.trials < SETTLED:
        return task.least_s
    return max(task.least_s, task.best_s * task.trials / (task.trials + UNIT))
