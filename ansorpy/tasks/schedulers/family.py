"""The scheduler that follows each round by a short one for a task of the same family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np

from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.scheduler import Round, open_tasks
from ansorpy.tasks.schedulers.gradient import Gradient

__all__ = ["Family"]


@dataclass
class Family:
    """Chooses as ``gradient`` does, and gives a similar task a short round after each choice.

    Its families are classes: tasks that differ only in shapes.  After a round, the cost model has
    just learned about the task's family, so the member with the steepest gradient gets ``foresee``
    of a round.  This second round is left out while the task chosen had no correct program, and if
    it is alone in its family.

    Paper: FamilySeer, arXiv 2201.00194.  Source: its scheduler, with 16 trials after 64.  Differs:
    rounds vary in size, so the second one is a quarter of the usual round; it counts towards the
    gradient like any other (the source forgets its trials); families are the source's ``hash``,
    which :class:`~ansorpy.cost.family.FamilyModel` calls ``class``, where its recommended ``op``
    joins all tasks with the same main operator.
    """

    foresee: float = 0.25
    main: Gradient = Gradient()
    _leader: int | None = field(default=None, repr=False)

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
        mates = [] if self._leader is None else self._mates(tasks, self._leader)
        self._leader = None
        if mates:
            return Round(min(mates, key=lambda i: self.main.gradient(tasks, i)), self.foresee)
        chosen = self.main.next(tasks, rng)
        if chosen is not None and isfinite(tasks[chosen.task].best_s):
            self._leader = chosen.task
        return chosen

    def _mates(self, tasks: Sequence[TaskProgress], leader: int) -> list[int]:
        """The other open tasks of the leader's family that have a correct program."""
        family = tasks[leader].class_key
        others = [i for i in open_tasks(tasks) if i != leader and isfinite(tasks[i].best_s)]
        return [i for i in others if family and tasks[i].class_key == family]
