"""Which task to work on next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

__all__ = ["Gradient", "RoundRobin", "Standing", "TaskScheduler"]


@dataclass(frozen=True)
class Standing:
    """How a task stands.

    Args:
        weight: Occurrences in the network.
        best_after: Best seconds after each of its rounds (infinite: no correct program yet).
        flops: Arithmetic operations of the task.
        alive: More rounds are possible.
        family: Tasks of one non-empty family can be expected to reach similar throughput.
    """

    weight: float
    best_after: Sequence[float]
    flops: float
    alive: bool
    family: str = ""

    @property
    def rounds(self) -> int:
        """Rounds the task was given."""
        return len(self.best_after)

    @property
    def best_s(self) -> float:
        """Seconds of its fastest correct program; infinite without one."""
        return self.best_after[-1] if self.best_after else float("inf")


class TaskScheduler(Protocol):
    """Chooses the task of the next round."""

    def next(self, tasks: Sequence[Standing], rng: np.random.Generator) -> int | None:
        """Number of a task that is alive; None when there is none."""


@dataclass(frozen=True)
class RoundRobin:
    """The living task with the fewest rounds, the first of them in order."""

    def next(self, tasks: Sequence[Standing], rng: np.random.Generator) -> int | None:
        alive = [i for i, task in enumerate(tasks) if task.alive]
        return min(alive, key=lambda i: tasks[i].rounds, default=None)


@dataclass(frozen=True)
class Gradient:
    """The task from which one more round promises the largest gain of the weighted total.

    After one round each, the gain of task *i* with best time ``g`` after ``t`` rounds is
    ``w * (alpha * (g(t-1) - g(t-1-window)) / window + (1 - alpha) * (min(g - g/t, beta * flops /
    best throughput in the family) - g))``; the most negative is taken.  A task that found no
    correct program in ``patience`` rounds is dropped.

    Paper: OSDI'20 §6.2.  Source: TVM's TaskScheduler, alpha 0.2, beta 2, window 3.
    Differs: TVM drops a task after one round, but its rounds have 64 trials.
    """

    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    patience: int = 4

    def next(self, tasks: Sequence[Standing], rng: np.random.Generator) -> int | None:
        alive = [i for i, task in enumerate(tasks) if task.alive]
        fresh = [i for i in alive if not np.isfinite(tasks[i].best_s)]
        fresh = [i for i in fresh if tasks[i].rounds < self.patience]
        if fresh:
            return min(fresh, key=lambda i: tasks[i].rounds)
        valid = [i for i in alive if np.isfinite(tasks[i].best_s)]
        if not valid:
            return None
        gains = np.array([self.gradient(tasks, i) for i in valid])
        if len(gains) > 1 and (gains == gains[0]).all():
            return valid[int(rng.integers(len(valid)))]
        return valid[int(gains.argmin())]

    def gradient(self, tasks: Sequence[Standing], at: int) -> float:
        """Expected change of the weighted total, in seconds, per round given to task *at*."""
        task = tasks[at]
        forward = min(task.best_s - task.best_s / task.rounds, self._family_s(tasks, at))
        chain = self.alpha * self._backward(task) + (1 - self.alpha) * (forward - task.best_s)
        return task.weight * min(chain, 0.0)

    def _backward(self, task: Standing) -> float:
        """Change of the best time per round over the last rounds."""
        if task.rounds <= self.window:
            return 0.0
        earlier = task.best_after[-1 - self.window]
        return (task.best_s - earlier) / self.window if np.isfinite(earlier) else 0.0

    def _family_s(self, tasks: Sequence[Standing], at: int) -> float:
        """Seconds at 1/beta of the best throughput that the task's family has reached."""
        task = tasks[at]
        if not task.family:
            return float("inf")
        best = max(other.flops / other.best_s for other in tasks if other.family == task.family)
        return self.beta * task.flops / best if best > 0 else float("inf")
