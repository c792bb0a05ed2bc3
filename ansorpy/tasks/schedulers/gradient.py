"""The scheduler that gives rounds where the objective is expected to fall most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.tasks.standing import Standing

__all__ = ["Gradient"]


@dataclass(frozen=True)
class Gradient:
    """Chooses the task whose next round promises the largest gain in the objective.

    After one round each, the gradient of task *i* with best time ``g`` after ``t`` rounds is
    ``slope * (alpha * (g(t) - g(t-window)) / window + (1 - alpha) * (min(g - g/t, beta * flops /
    best throughput in the family) - g))``, where ``slope`` is the objective's derivative; the most
    negative wins.  No task is chosen when the objective depends on none that is alive.

    Paper: OSDI'20 §6.2.  Source: TVM's TaskScheduler, alpha 0.2, beta 2, window 3.
    Differs: rounds vary in size, so ``t`` counts ``unit`` trials; the gradient is divided by the
    task's cost; the forward estimate stops at the roofline, but keeps at least ``doubt`` of
    ``g/t``; a task no longer counts on its family's throughput once it had ``catching_up`` rounds
    more than its relatives.
    """

    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    unit: int = 8
    catching_up: int = 5
    doubt: float = 0.1

    def next(self, tasks: Sequence[Standing], rng: np.random.Generator) -> int | None:
        alive = [i for i, task in enumerate(tasks) if task.alive and task.slope > 0]
        fresh = [i for i in alive if not np.isfinite(tasks[i].best_s)]
        if fresh:
            # Heaviest first: time may run out before every task has had its first round.
            return min(fresh, key=lambda i: (tasks[i].rounds, -tasks[i].slope * tasks[i].least_s))
        valid = [i for i in alive if np.isfinite(tasks[i].best_s)]
        if not valid:
            return None
        gains = np.array([self.gradient(tasks, i) / tasks[i].cost for i in valid])
        if len(gains) > 1 and (gains == gains[0]).all():
            return valid[int(rng.integers(len(valid)))]
        return valid[int(gains.argmin())]

    def gradient(self, tasks: Sequence[Standing], at: int) -> float:
        """Expected change of the objective per ``unit`` trials given to task *at*."""
        task = tasks[at]
        plain = -task.best_s / self._time(task)
        reached = max(task.least_s, min(task.best_s + plain, self._family_s(tasks, at)))
        forward = min(reached - task.best_s, self.doubt * plain)
        chain = self.alpha * self._backward(task) + (1 - self.alpha) * forward
        return task.slope * min(chain, 0.0)

    def _time(self, task: Standing) -> float:
        """The paper's ``t``: rounds of ``unit`` trials, at least one."""
        return max(task.trials / self.unit, 1.0)

    def _backward(self, task: Standing) -> float:
        """Change of the best time per ``unit`` trials over the last rounds."""
        if task.rounds <= self.window:
            return 0.0
        earlier = task.best_after[-1 - self.window]
        trials = task.trials - task.trials_after[-1 - self.window]
        if not np.isfinite(earlier) or not trials:
            return 0.0
        return (task.best_s - earlier) * self.unit / trials

    def _family_s(self, tasks: Sequence[Standing], at: int) -> float:
        """Seconds at 1/beta of the best throughput in the task's family."""
        task = tasks[at]
        others = [t for i, t in enumerate(tasks) if i != at and t.family == task.family]
        if not task.family or not others or not task.flops:
            return float("inf")
        if self._time(task) > self.catching_up + max(self._time(other) for other in others):
            return float("inf")
        best = max(other.flops / other.best_s for other in (task, *others))
        return self.beta * task.flops / best if best > 0 else float("inf")
