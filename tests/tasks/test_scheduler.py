"""Task scheduling policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.scheduler import Round, TaskScheduler
from ansorpy.tasks.schedulers import SCHEDULERS
from ansorpy.tasks.schedulers.gradient import Gradient
from ansorpy.tasks.schedulers.round_robin import RoundRobin
from tests.budget import examples
from tests.tasks.progress import INF, progress
from tests.tasks.simulated import curve, run


def choose(scheduler: TaskScheduler, *tasks: TaskProgress) -> int | None:
    chosen = scheduler.next(tasks, np.random.default_rng(0))
    return None if chosen is None else chosen.task


def test_the_known_ones_have_names() -> None:
    assert SCHEDULERS.names == ("gradient", "round_robin", "dynatune", "family", "harl")
    assert SCHEDULERS.one("gradient") == Gradient()
    assert SCHEDULERS.one("round_robin") == RoundRobin()


def test_every_task_gets_a_first_round_the_heaviest_first() -> None:
    light, heavy = progress(least_s=1.0), progress(gradient=3.0, least_s=2.0)
    assert choose(Gradient(), progress(1.0), light, heavy) == 2
    assert choose(Gradient(), progress(1.0), light, progress(INF)) == 1


def test_the_gradient_is_the_papers() -> None:
    tasks = [progress(9.0, 7.0, 6.0, 5.0, 4.0, gradient=3.0)]
    backward, forward = (4.0 - 7.0) / 3, -4.0 / 5
    expected = 3.0 * (0.2 * backward + 0.8 * forward)
    assert Gradient().gradient(tasks, 0) == pytest.approx(expected)


def test_rounds_count_by_their_trials() -> None:
    small = progress(8.0, 4.0, trials_after=(8, 16))
    large = progress(8.0, 4.0, trials_after=(16, 64))
    assert Gradient().gradient([small], 0) == pytest.approx(0.8 * -4.0 / 2)
    assert Gradient().gradient([large], 0) == pytest.approx(0.8 * -4.0 / 8)


def test_a_class_shows_what_can_be_reached() -> None:
    fast = progress(1.0, 1.0, flops=100.0, class_key="conv")
    slow = progress(50.0, 50.0, flops=100.0, class_key="conv")
    alone = progress(50.0, 50.0, flops=100.0)
    assert Gradient().gradient([fast, slow], 1) == pytest.approx(0.8 * (2.0 - 50.0))
    assert Gradient().gradient([fast, alone], 1) == pytest.approx(0.8 * -25.0)


def test_a_class_promises_nothing_to_who_had_more_rounds_than_the_others() -> None:
    fast = progress(1.0, flops=100.0, class_key="conv")
    tried = progress(*[50.0] * 7, flops=100.0, class_key="conv")
    assert Gradient().gradient([fast, tried], 1) == pytest.approx(0.8 * -50.0 / 7)


def test_gains_end_at_the_roofline_but_for_a_doubt() -> None:
    def gradient(least_s: float) -> float:
        return Gradient().gradient([progress(10.0, 10.0, least_s=least_s)], 0)

    assert gradient(8.0) == pytest.approx(0.8 * -2 / 2)
    assert gradient(10.0) == gradient(12.0) == pytest.approx(0.8 * -1 / 2)


def test_a_task_near_its_roofline_is_not_left_alone_for_heavier_ones() -> None:
    """It has a third of the gain, so it gets a round after three of theirs, not after all."""
    near = progress(1.0, least_s=0.75)
    assert choose(Gradient(), near, progress(*[1.0] * 2, least_s=0.25)) == 1
    assert choose(Gradient(), near, progress(*[1.0] * 4, least_s=0.25)) == 0


def test_heavy_tasks_come_first_while_they_lack_most_of_their_plan() -> None:
    better = progress(10.0, 10.0, least_s=1.0, share=0.4)
    assert choose(Gradient(), better, progress(4.0, least_s=3.0, share=0.6)) == 1
    assert choose(Gradient(), better, progress(4.0, 4.0, least_s=3.0, share=0.6)) == 0
    assert choose(Gradient(), better, progress(4.0, least_s=3.5, share=0.6)) == 0  # too near
    assert choose(Gradient(), better, progress(1.0, least_s=0.1, share=0.6)) == 0  # too light


def test_heavy_improving_and_cheap_tasks_come_first() -> None:
    assert choose(Gradient(), progress(1.0), progress(1.0, gradient=5.0)) == 1
    assert choose(Gradient(), progress(*[2.0] * 20), progress(*np.linspace(9, 2, 20))) == 1
    assert choose(Gradient(), progress(1.0, cost=2.0), progress(1.0)) == 1


def test_tasks_without_a_correct_program_come_first() -> None:
    assert choose(Gradient(), progress(INF), progress(3.0)) == 0
    assert choose(Gradient(), progress(3.0), progress(*[INF] * 4)) == 1


EVERY = pytest.mark.parametrize("name", SCHEDULERS.names)


@EVERY
def test_dead_tasks_are_never_chosen(name: str) -> None:
    make = SCHEDULERS.factory(name)
    assert choose(make(), progress(1.0, alive=False), progress(9.0, 9.0)) == 1
    assert choose(make(), progress(alive=False)) is None
    assert choose(make()) is None


@EVERY
def test_tasks_the_objective_does_not_depend_on_get_nothing(name: str) -> None:
    make = SCHEDULERS.factory(name)
    assert choose(make(), progress(9.0, gradient=0.0), progress(1.0, 1.0)) == 1
    assert choose(make(), progress(9.0, gradient=0.0), progress(gradient=0.0)) is None


@EVERY
@pytest.mark.parametrize("is_chosen", [True, False])
def test_what_was_chosen_before_matters_to_no_task_that_has_died(
    name: str, is_chosen: bool
) -> None:
    """Some remember the last round's task, and who resembles it."""
    scheduler = SCHEDULERS.one(name)
    tasks = [progress(9.0, 9.0, class_key="one"), progress(9.0, 9.0, class_key="one")]
    first = choose(scheduler, *tasks)
    assert first is not None
    dies = first if is_chosen else 1 - first
    tasks[dies] = replace(tasks[dies], alive=False)
    assert choose(scheduler, *tasks) == 1 - dies
    tasks[1 - dies] = replace(tasks[1 - dies], gradient=0.0)
    assert choose(scheduler, *tasks) is None


def test_equal_gains_are_drawn_at_random() -> None:
    tasks = [progress(1.0)] * 4
    drawn = {Gradient().next(tasks, np.random.default_rng(s)) for s in range(40)}
    assert drawn == {Round(at) for at in range(4)}


def test_round_robin_takes_turns() -> None:
    assert choose(RoundRobin(), progress(1.0, 1.0), progress(1.0), progress(INF)) == 1


@given(st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=8), min_size=1, max_size=6))
def test_gradients_are_finite_and_negative(curves: list[list[float]]) -> None:
    tasks = [progress(*sorted(curve, reverse=True), class_key="one") for curve in curves]
    for at in range(len(tasks)):
        assert -INF < Gradient().gradient(tasks, at) < 0


@examples(30)
@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1e-2), st.floats(0, 4), st.integers(1, 9)), min_size=1, max_size=7
    )
)
def test_no_living_task_starves(tasks: list[tuple[float, float, int]]) -> None:
    curves = [curve(g, a) for g, a, _ in tasks]
    shares = np.array([g * calls for g, _, calls in tasks])
    trials = np.array(run(Gradient(), curves, [float(c) for *_, c in tasks], 20 * len(tasks)))
    assert trials.sum() == 160 * len(tasks) and (trials >= 8).all()
    # What a task gets follows its part of the total, within the steps of a round.
    fair = trials.sum() * shares / shares.sum()
    assert (trials >= fair / 4 - 8).all() and (trials <= 8 + fair * 4).all()


def test_a_gradient_is_better_than_turns_on_uneven_curves() -> None:
    curves = [curve(g, 40.0) for g in (1e-2, 1e-4, 1e-5)]

    def total(scheduler: TaskScheduler) -> float:
        trials = run(scheduler, curves, [1.0, 1.0, 1.0], 60)
        return sum(best(t) for best, t in zip(curves, trials, strict=True))

    assert total(Gradient()) < 0.9 * total(RoundRobin())
