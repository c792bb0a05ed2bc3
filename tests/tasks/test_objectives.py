"""Objectives and their derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansorpy.errors import UsageError
from ansorpy.tasks.objective import Goal
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.objectives.early_stop import EarlyStop
from ansorpy.tasks.objectives.geomean import GeometricMean
from ansorpy.tasks.objectives.latency_bounds import LatencyBounds
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.standing import Standing
from tests.tasks.standings import INF, standing

SECONDS = st.floats(1e-6, 1.0)
GOALS = st.lists(
    st.builds(
        Goal,
        calls=st.tuples(*[st.integers(0, 5).map(float)] * 3),
        weight=st.floats(0.1, 10),
        bound_s=st.none() | SECONDS,
        baseline_s=st.none() | SECONDS,
    ).filter(lambda goal: any(goal.calls)),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("name", OBJECTIVES.names)
@settings(deadline=None)
@given(goals=GOALS, seconds=st.tuples(SECONDS, SECONDS, SECONDS))
def test_slopes_are_the_numeric_derivative(
    name: str, goals: list[Goal], seconds: tuple[float, float, float]
) -> None:
    objective, tasks = OBJECTIVES.one(name), [standing(s) for s in seconds]

    def moved(at: int, by: float) -> list[Standing]:
        return [standing(s * (1 + by * (i == at))) for i, s in enumerate(seconds)]

    for at, slope in enumerate(objective.slopes(goals, tasks)):
        up, down = (objective.value(goals, moved(at, by)) for by in (1e-6, -1e-6))
        numeric = (up - down) / (2e-6 * seconds[at])
        left, right = (LatencyBounds().slopes(goals, moved(at, by)) for by in (-1e-6, 1e-6))
        assume(np.array_equal(left, right))  # no bound lies between
        scale = max(abs(objective.value(goals, tasks)) / seconds[at], 1e-12)
        assert slope >= 0
        assert slope == pytest.approx(numeric, rel=1e-3, abs=1e-8 * scale)


def test_bounds_met_end_a_network_s_claims() -> None:
    tasks = [standing(2.0), standing(3.0), standing(1.0)]
    fast = Goal((1.0, 1.0, 0.0), bound_s=5.5, name="fast")
    slow = Goal((0.0, 2.0, 1.0), bound_s=6.0, weight=2.0, name="slow")
    free = Goal((0.0, 0.0, 1.0))
    assert LatencyBounds().slopes([fast, slow], tasks).tolist() == [0.0, 4.0, 2.0]
    assert LatencyBounds().slopes([fast, free], tasks).tolist() == [0.0, 0.0, 1.0]
    assert LatencyBounds().value([fast, slow], tasks) == 5.5 + 2 * 7.0
    unknown = [standing(), *tasks[1:]]
    assert LatencyBounds().slopes([fast], unknown).tolist() == [1.0, 1.0, 0.0]


def test_speed_ups_count_alike_however_slow_the_network() -> None:
    tasks = [standing(100.0), standing(1.0)]
    goals = [Goal((1.0, 0.0), baseline_s=400.0), Goal((0.0, 1.0), baseline_s=1.0)]
    assert GeometricMean().value(goals, tasks) == pytest.approx(-2.0)
    slopes = GeometricMean().slopes(goals, tasks) * [100.0, 1.0]
    assert slopes[0] == pytest.approx(slopes[1])
    rebased = [replace(goal, baseline_s=None) for goal in goals]
    ratio = GeometricMean().slopes(rebased, tasks) / GeometricMean().slopes(goals, tasks)
    assert ratio[0] == pytest.approx(ratio[1])


def test_tasks_that_stopped_improving_do_not_count() -> None:
    tasks = [standing(2.0, since_gain=48), standing(3.0, since_gain=47)]
    assert EarlyStop().slopes([Goal((1.0, 2.0))], tasks).tolist() == [0.0, 2.0]
    assert EarlyStop().value([Goal((1.0, 2.0))], tasks) == 8.0


@pytest.mark.parametrize("name", OBJECTIVES.names)
def test_tasks_without_a_time_are_left_out(name: str) -> None:
    objective, tasks = OBJECTIVES.one(name), [standing(INF), standing(), standing(2.0)]
    goals = [Goal((1.0, 1.0, 1.0), bound_s=1.0), Goal((1.0, 0.0, 0.0))]
    assert np.isfinite(objective.value(goals, tasks))
    slopes = objective.slopes(goals, tasks)
    assert np.isfinite(slopes).all() and (slopes > 0).all()
    assert WeightedSum().value(goals, tasks) == 2.0


def with_figure(goal: Goal, figure: str, value: float | None) -> Goal:
    return {"bound_s": replace(goal, bound_s=value), "baseline_s": replace(goal, baseline_s=value)}[
        figure
    ]


@pytest.mark.parametrize("name", OBJECTIVES.names)
@settings(deadline=None)
@given(goals=GOALS, seconds=st.tuples(SECONDS, SECONDS, SECONDS))
def test_figures_that_are_not_read_make_no_difference(
    name: str, goals: list[Goal], seconds: tuple[float, float, float]
) -> None:
    objective, tasks = OBJECTIVES.one(name), [standing(s) for s in seconds]
    for figure in {"bound_s", "baseline_s"} - objective.reads:
        for value in (None, 1e-7, 100.0):
            others = [with_figure(goal, figure, value) for goal in goals]
            assert objective.value(others, tasks) == objective.value(goals, tasks)
            same = objective.slopes(others, tasks) == objective.slopes(goals, tasks)
            assert same.all()


@pytest.mark.parametrize("name", OBJECTIVES.names)
def test_figures_that_are_read_make_one(name: str) -> None:
    objective, tasks = OBJECTIVES.one(name), [standing(2.0)]
    for figure in objective.reads:
        low, high = (with_figure(Goal((1.0,)), figure, value) for value in (0.5, 8.0))
        assert objective.value([low], tasks) != objective.value([high], tasks)


def test_figures_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="bound_s of net must be positive: 0"):
        Goal((1.0,), bound_s=0.0, name="net")
