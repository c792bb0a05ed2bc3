"""Trials go to the tasks that take the time: whole runs on a simulated machine and clock."""

from __future__ import annotations

import re

import pytest

from ansorpy.tasks.budget import Budget
from tests.tasks.curves import Curve, tuned

CNN = [
    Curve(0.01, 4.0, 3.0),
    *[Curve(0.27, 1.9, 1.25)] * 2,  # strided convolutions, near the roofline of their definition
    *[Curve(0.13, 3.5, 2.2)] * 2,  # convolutions far from Winograd's
    Curve(0.06, 1.6, 1.2),
    Curve(0.13, 2.2, 1.4),
    *[Curve(1e-5, 30.0, 20.0)] * 4,  # pooling, a small product, softmax
]


@pytest.mark.parametrize(
    ("budget", "slower"),
    [
        (Budget(time_limit_s=30.0), 1.0),
        (Budget(time_limit_s=30.0), 2.0),
        (Budget(time_limit_s=40.0, plateau=32), 1.0),
        (Budget(trials=200), 1.0),
    ],
)
def test_heavy_tasks_get_their_plan_and_trivial_ones_little(budget: Budget, slower: float) -> None:
    found = tuned(CNN, budget, slower)
    heavy = [task for task in found if task.is_heavy]
    assert len(heavy) >= 4
    assert all(task.trials.got >= task.trials.planned / 2 for task in heavy)
    assert all(task.trials.got <= 4 for task in found if task.share < 1e-3)


def test_a_task_that_gets_less_than_planned_says_why() -> None:
    near = [Curve(0.5, 1.1, 1.05), *[Curve(0.1, 4.0, 2.0)] * 5]
    first, *others = (task.trials for task in tuned(near, Budget(trials=300)))
    assert first.got < first.planned / 2 and re.fullmatch("within .% of its roofline", first.why)
    assert all(task.got > 1.1 * task.planned for task in others)


def test_a_heavy_task_that_stopped_improving_gets_its_plan_before_others_go_on() -> None:
    flat = [Curve(0.6, 4.0, 4.0), *[Curve(0.1, 9.0, 3.0)] * 4]
    first, *_ = tuned(flat, Budget(time_limit_s=20.0, plateau=16))
    assert first.is_heavy and first.trials.got >= first.trials.planned / 2


def test_a_slow_machine_is_noticed_while_there_is_time_for_all_first_rounds() -> None:
    shares = [0.23, 0.15, 0.25, 0.09, 0.28]
    found = tuned([Curve(share, 2.5, 1.8) for share in shares], Budget(time_limit_s=13.5), 2.3)
    assert all(task.trials.got >= max(task.trials.planned / 2, 1) for task in found)
