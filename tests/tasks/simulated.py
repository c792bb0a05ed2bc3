"""Schedulers at work on tasks that improve along given curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from ansorpy.tasks.objective import Objective, TunedNetwork, with_gradients
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.scheduler import TaskScheduler
from tests.tasks.progress import progress

__all__ = ["curve", "run", "visits"]


def curve(best_s: float, spread: float) -> Callable[[int], float]:
    """The best time after so many trials."""
    return lambda trials: best_s * (1 + spread / trials)


def visits(
    scheduler: TaskScheduler, curves: Sequence[Callable[[int], float]], calls: Sequence[float],
    rounds: int, objective: Objective | None = None, size: int = 8, families: Sequence[str] = (),
) -> list[tuple[int, int]]:  # fmt: skip
    """The task and the trials of each of so many rounds."""
    objective, network = objective or WeightedSum(), TunedNetwork(tuple(calls))
    best: list[list[float]] = [[] for _ in curves]
    trials: list[list[int]] = [[] for _ in curves]
    rng, found = np.random.default_rng(0), []
    for _ in range(rounds):
        tasks = [
            progress(*b, trials_after=t, class_key=families[n] if families else "")
            for n, (b, t) in enumerate(zip(best, trials, strict=True))
        ]
        chosen = scheduler.next(with_gradients(tasks, objective, [network]), rng)
        assert chosen is not None
        at, spent = chosen.task, ceil(size * chosen.part)
        trials[at].append(spent + (trials[at][-1] if trials[at] else 0))
        best[at].append(curves[at](trials[at][-1]))
        found.append((at, spent))
    return found


def run(
    scheduler: TaskScheduler, curves: Sequence[Callable[[int], float]], calls: Sequence[float],
    rounds: int, objective: Objective | None = None,
) -> list[int]:  # fmt: skip
    """Trials of each task after so many rounds of eight."""
    spent = visits(scheduler, curves, calls, rounds, objective)
    return [sum(n for task, n in spent if task == at) for at in range(len(curves))]
