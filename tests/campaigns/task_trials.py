"""Random sets of tasks, tuned on a simulated machine: the heavy ones get their trials."""

from __future__ import annotations

import numpy as np

from ansorpy.tasks.budget import Budget
from tests.campaigns.campaign import Campaign
from tests.tasks.curves import Curve, tuned

__all__ = ["TASK_TRIALS"]


def _case(rng: np.random.Generator, number: int) -> str:
    """Tune 2 to 9 tasks under a random budget, on a machine that is faster or slower than planned.

    No task that ends with over a tenth of the time, and over a fifth of its own time above its
    roofline, gets fewer than half of its planned trials.
    """
    tasks = int(rng.integers(2, 10))
    budget, kind = _budget(rng, tasks)
    found = tuned(_curves(rng, tasks), budget, float(np.exp(rng.normal(0.0, 0.4))))
    for task in found:
        is_short = task.trials.got < task.trials.planned / 2
        assert not (task.is_heavy and is_short), (task, budget)
    return f"{kind}, {sum(task.is_heavy for task in found)} heavy"


def _curves(rng: np.random.Generator, tasks: int) -> list[Curve]:
    """Shares from nearly equal to ones that differ by orders of magnitude."""
    shares = np.exp(rng.normal(0.0, rng.uniform(0.2, 3.0), tasks))
    last = 1.0 + rng.exponential(0.8, tasks)
    first = last * (1.0 + rng.exponential(0.7, tasks))
    shares /= shares.sum()
    return [Curve(*map(float, row)) for row in zip(shares, first, last, strict=True)]


def _budget(rng: np.random.Generator, tasks: int) -> tuple[Budget, str]:
    if rng.random() < 0.4:
        return Budget(trials=tasks * int(rng.integers(4, 32))), "trials"
    seconds = tasks * float(rng.uniform(2.0, 6.0))
    if rng.random() < 0.5:
        return Budget(time_limit_s=seconds), "time"
    return Budget(time_limit_s=seconds, plateau=int(rng.integers(8, 65))), "plateau"


TASK_TRIALS = Campaign(
    "tunes random tasks on a simulated machine, and checks that trials go where the time is",
    _case,
    short=1,
)
