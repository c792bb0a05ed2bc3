"""Parts of a network that can be computed in several ways: which way leads, and which are tried.

The times of a way's tasks add up.  A way that is not the fastest so far goes on being tuned while
its tasks may yet fall below the leader's time; then its tasks get nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansorpy.tasks.standing import Standing

__all__ = ["Either"]

Floats = npt.NDArray[np.float64]

TRIED = 0.5
"""Part of its calls that a way counts with that is behind but may win: the gain of a task in it
only matters once it has."""

SETTLED = 16
"""Trials before which a task's best time says nothing of what it will be: the first two programs of
a product of BERT's attention took 5 ms, the best of 60 took 0.03 ms."""

UNIT = 8
"""After ``n`` times this many trials a task is hoped to become faster by one part in ``n + 1`` at
most: what the gradient scheduler hopes for, OSDI'20 §6.2."""


@dataclass(frozen=True)
class Either:
    """Calls of each task of the run, in each of the ways; one of them is enough."""

    ways: tuple[tuple[float, ...], ...]

    def seconds(self, tasks: Sequence[Standing]) -> Floats:
        """What each way takes; infinite while one of its tasks has no correct program."""
        return _sums(self.ways, [task.best_s for task in tasks])

    def is_known(self, tasks: Sequence[Standing]) -> bool:
        """True when one of the ways has a correct program of each of its tasks."""
        return bool(np.isfinite(self.seconds(tasks)).any())

    def leader(self, tasks: Sequence[Standing]) -> Floats:
        """Calls of the fastest way; of the first while none is complete."""
        return np.array(self.ways[int(self.seconds(tasks).argmin())], dtype=np.float64)

    def claims(self, tasks: Sequence[Standing]) -> Floats:
        """Calls that count in giving out trials: all of the leader's, a part of the others'.

        While no way is complete, all that may become so have an even part.
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
    """Calls times seconds of each way; tasks it does not call do not matter."""
    calls = np.array(ways, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        each = np.where(calls > 0, calls * np.array(seconds), 0.0)
    total: Floats = each.sum(axis=1)
    return total


def _hoped_s(task: Standing) -> float:
    """What the task's program may come down to; infinite for one that is given up without any."""
    if not np.isfinite(task.best_s):
        return task.least_s if task.alive else float("inf")
    if not task.alive:
        return task.best_s
    if task.trials < SETTLED:
        return task.least_s
    return max(task.least_s, task.best_s * task.trials / (task.trials + UNIT))
