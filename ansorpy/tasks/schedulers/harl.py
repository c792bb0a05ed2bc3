"""The scheduler that treats tasks as the arms of a bandit whose rewards change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from ansorpy.search.bandits import SlidingWindowUCB
from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.scheduler import Round, first_round, open_tasks
from ansorpy.tasks.schedulers.gradient import Gradient

__all__ = ["Harl"]


@dataclass
class Harl:
    """Chooses the task with the highest upper confidence bound on its recent rewards.

    The reward of a round is the gradient of its task after the round, relative to the steepest
    gradient of all tasks.  Gradients shrink while a task is tuned, so only the last ``window``
    rewards count (:class:`~ansorpy.search.bandits.SlidingWindowUCB`).

    Paper: HARL, ICPP 2022, arXiv 2211.11172: the upper of its two bandits, c 0.25, window 256.
    No source is public: the exact reward is ours.
    """

    window: int = 256
    c: float = 0.25
    promise: Gradient = Gradient()
    _bandit: SlidingWindowUCB | None = field(default=None, repr=False)
    _last: int | None = field(default=None, repr=False)

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
        bandit = self._bandit or SlidingWindowUCB(len(tasks), self.window, self.c)
        self._bandit = bandit
        if self._last is not None:
            bandit.tell(self._last, self._reward(tasks, self._last))
        chosen, arms = first_round(tasks), open_tasks(tasks)
        if chosen is None and arms:
            chosen = Round(bandit.pick(rng, arms))
        self._last = None if chosen is None else chosen.task
        return chosen

    def _reward(self, tasks: Sequence[TaskProgress], at: int) -> float:
        known = [i for i in {*open_tasks(tasks), at} if isfinite(tasks[i].best_s)]
        gains = {i: -self.promise.gradient(tasks, i) for i in known}
        steepest = max(gains.values(), default=0.0)
        return gains.get(at, 0.0) / steepest if steepest > 0 else 0.0
