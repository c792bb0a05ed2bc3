"""The scheduler that extrapolates each task's learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ansorpy.tasks.learning_curves import CurvePosterior, Sampler
from ansorpy.tasks.pace import USUAL_ROUND
from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.scheduler import Round, first_round, open_tasks

__all__ = ["DynaTune"]


@dataclass
class DynaTune:
    """Chooses by the gain that the task's learning curve promises, plus a bonus for few rounds.

    The curve is the best throughput after so many trials; curves sampled from its posterior give
    the expected gain in the objective of another round.  With *n* of all *T* rounds given to the
    task, its bound is that gain, relative to the largest of all tasks, plus ``sqrt(c log(T) / n)``.
    Only the task that ran is fitted again.

    Paper: DynaTune, ICLR 2021.  Source: limenghao/DynaTune, c 2.  Differs: gains are relative, as
    a bonus of 1 means nothing beside hundreds of GFLOP/s; the gain is that along each curve, since
    a curve that passes below the last point would promise nothing; one family of curves is used;
    a round's time enters through the task's relative cost.

    Args:
        most: No curve is expected to rise above this many times the current throughput, nor above
            the roofline by more than ``doubt``.
    """

    c: float = 2.0
    most: float = 10.0
    doubt: float = 0.1
    sampler: Sampler = Sampler()
    _fits: dict[int, tuple[int, CurvePosterior]] = field(default_factory=dict, repr=False)

    def next(self, tasks: Sequence[TaskProgress], rng: np.random.Generator) -> Round | None:
        chosen, alive = first_round(tasks), open_tasks(tasks)
        if chosen is not None or not alive:
            return chosen
        gains = np.array([self._gain(tasks, i, rng) / tasks[i].cost for i in alive])
        gains /= max(gains.max(), np.finfo(np.float64).tiny)
        rounds = np.array([max(tasks[i].rounds, 1) for i in alive])
        bounds = gains + np.sqrt(self.c * np.log(max(rounds.sum(), 2)) / rounds)
        return Round(alive[int(bounds.argmax())])

    def _gain(self, tasks: Sequence[TaskProgress], at: int, rng: np.random.Generator) -> float:
        """Expected gain in the objective of another round of task *at*."""
        task = tasks[at]
        fitted, posterior = self._fits.get(at, (0, None))
        if posterior is None or fitted != task.trials:
            posterior = self._posterior(task, rng)
            self._fits[at] = task.trials, posterior
        now = posterior.at(task.trials)
        own = task.trials - task.earlier
        usual = own / task.rounds if task.rounds else USUAL_ROUND
        later = posterior.at(task.trials + usual)
        return task.objective_s * float(np.mean(1 - now / later))

    def _posterior(self, task: TaskProgress, rng: np.random.Generator) -> CurvePosterior:
        """The posterior of the task's curve, in multiples of its current throughput."""
        seconds = np.array(task.best_after)
        seen = np.isfinite(seconds)
        trials = np.array(task.trials_after, dtype=np.float64)[seen]
        roof = 1 / max(1 - task.headroom, 1 / self.most)
        most = max(roof, 1 / (1 - self.doubt))
        return self.sampler.fit(trials, task.best_s / seconds[seen], most, rng)
