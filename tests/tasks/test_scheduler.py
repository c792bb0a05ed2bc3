"""Which task gets the next round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.tasks.scheduler import Gradient, RoundRobin, Standing, TaskScheduler

INF = float("inf")


def standing(
    *best_after: float,
    weight: float = 1.0,
    flops: float = 1e6,
    alive: bool = True,
    family: str = "",
) -> Standing:
    return Standing(weight, best_after, flops, alive, family)


def choose(scheduler: TaskScheduler, *tasks: Standing) -> int | None:
    return scheduler.next(tasks, np.random.default_rng(0))


def test_every_task_gets_a_first_round_in_order() -> None:
    assert choose(Gradient(), standing(1.0), standing(), standing()) == 1


def test_the_gradient_is_the_papers() -> None:
    tasks = [standing(9.0, 7.0, 6.0, 5.0, 4.0, weight=3.0)]
    backward, forward = (4.0 - 7.0) / 3, -4.0 / 5
    expected = 3.0 * (0.2 * backward + 0.8 * forward)
    assert Gradient().gradient(tasks, 0) == pytest.approx(expected)


def test_a_family_shows_what_can_be_reached() -> None:
    fast = standing(1.0, 1.0, flops=100.0, family="conv")
    slow = standing(50.0, 50.0, flops=100.0, family="conv")
    alone = standing(50.0, 50.0, flops=100.0)
    assert Gradient().gradient([fast, slow], 1) == pytest.approx(0.8 * (2.0 - 50.0))
    assert Gradient().gradient([fast, alone], 1) == pytest.approx(0.8 * -25.0)


def test_heavy_and_improving_tasks_come_first() -> None:
    assert choose(Gradient(), standing(1.0), standing(1.0, weight=5.0)) == 1
    assert choose(Gradient(), standing(*[2.0] * 20), standing(*np.linspace(9, 2, 20))) == 1


def test_tasks_without_a_correct_program_are_dropped() -> None:
    assert choose(Gradient(), standing(INF), standing(3.0)) == 0
    assert choose(Gradient(), standing(*[INF] * 4), standing(3.0)) == 1
    assert choose(Gradient(), standing(*[INF] * 4)) is None


def test_dead_tasks_are_never_chosen() -> None:
    schedulers: list[TaskScheduler] = [Gradient(), RoundRobin()]
    for scheduler in schedulers:
        assert choose(scheduler, standing(1.0, alive=False), standing(9.0, 9.0)) == 1
        assert choose(scheduler, standing(alive=False)) is None
        assert choose(scheduler) is None


def test_equal_gains_are_drawn_at_random() -> None:
    tasks = [standing(1.0)] * 4
    drawn = {Gradient().next(tasks, np.random.default_rng(s)) for s in range(40)}
    assert drawn == {0, 1, 2, 3}


def test_round_robin_takes_turns() -> None:
    assert choose(RoundRobin(), standing(1.0, 1.0), standing(1.0), standing(INF)) == 1


@given(st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=8), min_size=1, max_size=6))
def test_gradients_are_finite_and_never_positive(curves: list[list[float]]) -> None:
    tasks = [standing(*sorted(curve, reverse=True)) for curve in curves]
    for at in range(len(tasks)):
        assert -INF < Gradient().gradient(tasks, at) <= 0
