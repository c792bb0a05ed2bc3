"""The scheduler that gives rounds to the tasks expected to lower the objective most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.scheduler import Round, first_round, open_tasks

__all__ = ["Gradient"]


@dataclass(frozen=True)
class Gradient:
    """Chooses the task whose next round promises the largest gain in the objective.

    After one round each, the gradient of a task with best time ``g`` after ``t`` rounds is
    ``gradient * (alpha * (g(t) - g(t-window)) / window + (1 - alpha) * (min(g - h/t, beta * flops /
    best throughput in the class) - g))``, where ``gradient`` is the objective's derivative and
    ``h`` the time above the task's roofline; the most negative wins.  No task is chosen if the
    objective depends on none that is alive.

    Paper: OSDI'20 §6.2.  Source: TVM's TaskScheduler, alpha 0.2, beta 2, window 3.
    Differs:

    - Rounds vary in size, so ``t`` counts ``unit`` trials, and the gradient is divided by the
      task's cost.
    - ``h`` is ``g`` in the paper, which expects times to approach zero.  Here it is at least
      ``doubt * g``, because rooflines are estimates.
    - The class term is dropped once a task has had ``catching_up`` rounds more than the others in
      its class.
    - A task that takes more than ``heavy`` of the time, with more than ``far`` of its own time
      above the roofline, comes first while it has less than ``floor`` of its planned trials, even
      if it rests.  TVM instead picks tasks at random now and then.
    """

    alpha: float = 0.2
    beta: float = 2.0
    window: int = 3
    unit: int = 8
    catching_up: int = 5
    doubt: float = 0.1
    heavy: float = 0.1
    far: float = 0.2
    floor: float = 0.6

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
        fresh, alive = first_round(tasks), open_tasks(tasks)
        if fresh is not None or not alive:
            return fresh
        valid = self._behind(tasks) or alive
        gains = np.array([self.gradient(tasks, i) for i in valid])
        if len(gains) > 1 and (gains == gains[0]).all():
            return Round(valid[int(rng.integers(len(valid)))])
        return Round(valid[int(gains.argmin())])

    def gradient(self, tasks: Sequence[TaskProgress], at: int) -> float:
        """Expected change of the objective per ``unit`` trials of task *at*, over their cost."""
        task = tasks[at]
        gain_s = task.best_s * max(task.headroom, self.doubt) / self._time(task)
        class_gain_s = task.best_s - max(self._class_s(tasks, at), task.least_s)
        forward = -max(gain_s, class_gain_s)
        chain = self.alpha * self._backward(task) + (1 - self.alpha) * forward
        return task.gradient * min(chain, 0.0) / task.cost

    def _behind(self, tasks: Sequence[TaskProgress]) -> list[int]:
        """The tasks that are heavy, far from their roofline and short of their planned trials."""
        trials = sum(task.trials for task in tasks)
        total_s = sum(task.objective_s for task in tasks)
        return [
            i
            for i, task in enumerate(tasks)
            if (task.alive or task.resting)
            and task.trials < self.floor * task.share * trials
            and task.objective_s > self.heavy * total_s
            and task.headroom > self.far
        ]

    def _time(self, task: TaskProgress) -> float:
        """The paper's ``t``: rounds of ``unit`` trials, at least one."""
        return max(task.trials / self.unit, 1.0)

    def _backward(self, task: TaskProgress) -> float:
        """Change of the best time per ``unit`` trials over the last rounds."""
        if len(task.best_after) <= self.window:
            return 0.0
        earlier = task.best_after[-1 - self.window]
        trials = task.trials - task.trials_after[-1 - self.window]
        if not np.isfinite(earlier) or not trials:
            return 0.0
        return (task.best_s - earlier) * self.unit / trials

    def _class_s(self, tasks: Sequence[TaskProgress], at: int) -> float:
        """Seconds at 1/beta of the best throughput in the task's class."""
        task = tasks[at]
        others = [t for i, t in enumerate(tasks) if i != at and t.class_key == task.class_key]
        if not task.class_key or not others or not task.flops:
            return float("inf")
        if self._time(task) > self.catching_up + max(self._time(other) for other in others):
            return float("inf")
        best = max(other.flops / other.best_s for other in (task, *others))
        return self.beta * task.flops / best if best > 0 else float("inf")
