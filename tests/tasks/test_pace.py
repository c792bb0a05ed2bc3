"""Sizes of rounds: time limits hold, and heavy tasks get most of the first pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.tasks.budget import LARGEST_ROUND, Budget
from ansorpy.tasks.pace import (
    FIRST_ROUND_S,
    LEAST_ROUND,
    ROUND_S,
    TRIAL_S,
    USUAL_ROUND,
    Pace,
)
from ansorpy.tasks.progress import TaskProgress
from ansorpy.tasks.schedulers.gradient import Gradient
from tests.budget import examples
from tests.tasks.progress import progress


def spend(
    weights: list[float], limit_s: float, first_x: float, later_x: float
) -> tuple[float, list[list[int]]]:
    """Seconds of a run on a machine slower than expected by a factor, and rounds of each task."""
    pace, clock = Pace(Budget(time_limit_s=limit_s), len(weights)), 0.0
    rounds: list[list[int]] = [[] for _ in weights]
    rng = np.random.default_rng(0)
    while clock < limit_s:
        tasks = [_progress_of(w, w / sum(weights), r) for w, r in zip(weights, rounds, strict=True)]
        chosen = Gradient().next(tasks, rng)
        assert chosen is not None
        at = chosen.task
        size = pace.size(at, tasks, limit_s - clock)
        factor, fixed_s = (later_x, ROUND_S) if rounds[at] else (first_x, FIRST_ROUND_S)
        took = factor * (fixed_s + size * TRIAL_S)
        pace.note(at, not rounds[at], size, took, factor * size * TRIAL_S)
        rounds[at].append(size)
        clock += took
    return clock, rounds


def _progress_of(weight: float, share: float, rounds: list[int]) -> TaskProgress:
    trials = np.cumsum(rounds).tolist()
    best = [1e-3 * (1 + 4 / t) for t in trials]
    return progress(*best, trials_after=trials, gradient=weight, least_s=1e-3, share=share)


@examples(25)
@given(
    st.lists(st.floats(0.01, 30), min_size=1, max_size=60),
    st.floats(60, 600),
    st.floats(0.5, 2.5),
    st.floats(0.3, 2.5),
)
def test_a_time_limit_holds_and_no_task_is_left_out(
    weights: list[float], limit_s: float, first_x: float, later_x: float
) -> None:
    took, rounds = spend(weights, limit_s, first_x, later_x)
    assert took <= limit_s + 2 * later_x * (ROUND_S + TRIAL_S)
    if limit_s > 2.5 * len(weights) * first_x * (FIRST_ROUND_S + 2 * TRIAL_S):
        assert all(sum(r) >= 2 for r in rounds)


def test_hundreds_of_tasks_all_have_their_first_round_in_five_minutes() -> None:
    took, rounds = spend([1.0] * 180 + [20.0] * 8, 300.0, 1.2, 1.0)
    assert took <= 302 and all(sum(r) >= 2 for r in rounds)
    light, heavy = np.mean([sum(r) for r in rounds[:180]]), np.mean([sum(r) for r in rounds[180:]])
    assert heavy > 2 * light


def test_heavy_tasks_begin_with_more_trials() -> None:
    pace = Pace(Budget(time_limit_s=100), 3)
    tasks = [progress(share=share) for share in (0.8, 0.2, 0.001)]
    assert [pace.size(at, tasks, 30.0) for at in range(3)] == [16, 5, 2]
    # The last ones do not inherit what the heavy ones left.
    tasks[:2] = [progress(1.0, share=0.8), progress(1.0, share=0.2)]
    assert pace.size(2, tasks, 30.0) == 2


def test_first_rounds_have_no_more_than_the_planned_trials() -> None:
    pace = Pace(Budget(trials=400), 3)
    tasks = [progress(share=share) for share in (0.9, 0.03, 0.0)]
    assert [pace.size(at, tasks, None) for at in range(3)] == [32, 12, 2]
    assert pace.size(2, [*tasks[:2], progress(1.0)], None) == 32


def test_rounds_shrink_to_the_time_left_and_to_the_trials_left() -> None:
    tasks = [progress(1.0, share=0.5), progress(1.0, share=0.5)]
    pace = Pace(Budget(time_limit_s=100), 2)
    assert [pace.size(0, tasks, s) for s in (90.0, 5.0, 1.0, 0.8, 0.1)] == [32, 15, 8, 6, 1]
    assert Pace(Budget(trials=16, time_limit_s=100), 2).size(0, tasks, 90.0) == 2
    assert Pace(Budget(trials_per_task=64), 2).size(0, tasks, None) == 16


def test_a_resumed_task_has_a_round_like_later_ones() -> None:
    pace = Pace(Budget(time_limit_s=100), 2)
    tasks = [_progress_of(1.0, 0.5, [64]) for _ in range(2)]
    resumed = [replace(task, earlier=64) for task in tasks]
    assert [task.rounds for task in resumed] == [0, 0]
    for left_s in (90.0, 20.0, 5.0):
        assert pace.size(0, resumed, left_s) == pace.size(0, tasks, left_s)


def test_what_rounds_took_is_learnt() -> None:
    pace = Pace(Budget(time_limit_s=100), 2)
    expected = pace.round_s(0, False, 16)
    for _ in range(50):
        pace.note(0, False, 16, 4 * expected, 4 * 16 * TRIAL_S)
    assert pace.round_s(0, False, 16) == pytest.approx(4 * expected, rel=0.05)
    assert expected < pace.round_s(1, False, 16) < 4.1 * expected


def test_rounds_are_larger_where_trials_are_short_beside_the_rest_of_a_round() -> None:
    tasks = [progress(1.0, share=1.0)]
    pace = Pace(Budget(time_limit_s=100), 1)
    assert pace.usual == USUAL_ROUND
    for size in (32, 24, 16):
        pace.note(0, False, size, 2.0 + size * 0.05, size * 0.05)
    assert pace.usual == LARGEST_ROUND
    assert pace.round_s(0, False, 1) == pytest.approx(2.05, rel=0.2)
    assert [pace.size(0, tasks, s) for s in (60.0, 6.0, 2.5)] == [32, 16, 11]


def test_first_rounds_leave_half_of_the_time_they_need_not_take() -> None:
    pace, clock = Pace(Budget(time_limit_s=100), 30), 0.0
    sizes: list[int] = []
    for at in range(30):
        tasks = [progress(*([1.0] if n < at else []), share=1 / 30) for n in range(30)]
        sizes.append(pace.size(at, tasks, 100.0 - clock))
        took = 2 * pace.round_s(at, True, sizes[-1]) / pace.round_s(at, True, 0) * FIRST_ROUND_S
        pace.note(at, True, sizes[-1], took, 0.0)
        clock += took
    least_s = 30 * 2 * (FIRST_ROUND_S + LEAST_ROUND * TRIAL_S)
    assert least_s <= clock <= least_s + 0.55 * (100 - least_s)
