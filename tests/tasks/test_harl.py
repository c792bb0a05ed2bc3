"""The bandit over tasks."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ansorpy.tasks.schedulers.harl import Harl
from tests.tasks.progress import progress
from tests.tasks.simulated import curve, visits


def test_heavy_tasks_get_most_rounds_and_no_task_starves() -> None:
    curves = [curve(g, 40.0) for g in (1e-2, 1e-3, 1e-3)]
    found = Counter(at for at, _ in visits(Harl(), curves, [1.0] * 3, 60))
    assert found[0] > 1.5 * max(found[1], found[2]) and min(found.values()) >= 3


def test_the_bandit_follows_a_change_of_what_the_objective_weighs() -> None:
    """The second half of the run weighs the other task."""
    scheduler, rng = Harl(window=16), np.random.default_rng(0)
    rounds = [1, 1]
    picked = []
    for turn in range(80):
        weights = (1.0, 0.05) if turn < 40 else (0.05, 1.0)
        tasks = [progress(*[5.0] * n, gradient=w) for n, w in zip(rounds, weights, strict=True)]
        chosen = scheduler.next(tasks, rng)
        assert chosen is not None
        rounds[chosen.task] += 1
        picked.append(chosen.task)
    assert np.mean(picked[20:40]) < 0.5 < np.mean(picked[60:])
