"""Objectives and their derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansorpy.errors import UsageError
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.objectives import OBJECTIVES
from ansorpy.tasks.objectives.early_stop import EarlyStop
from ansorpy.tasks.objectives.geomean import GeometricMean
from ansorpy.tasks.objectives.latency_bounds import LatencyBounds
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.progress import TaskProgress
from tests.tasks.progress import INF, progress

SECONDS = st.floats(1e-6, 1.0)
NETWORKS = st.lists(
    st.builds(
        TunedNetwork,
        calls=st.tuples(*[st.integers(0, 5).map(float)] * 3),
        weight=st.floats(0.1, 10),
        bound_s=st.none() | SECONDS,
        baseline_s=st.none() | SECONDS,
    ).filter(lambda network: any(network.calls)),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("name", OBJECTIVES.names)
@settings(deadline=None)
@given(networks=NETWORKS, seconds=st.tuples(SECONDS, SECONDS, SECONDS))
def test_gradients_are_the_numeric_derivative(
    name: str, networks: list[TunedNetwork], seconds: tuple[float, float, float]
) -> None:
    objective, tasks = OBJECTIVES.one(name), [progress(s) for s in seconds]

    def moved(at: int, by: float) -> list[TaskProgress]:
        return [progress(s * (1 + by * (i == at))) for i, s in enumerate(seconds)]

    for at, gradient in enumerate(objective.gradient(networks, tasks)):
        up, down = (objective.value(networks, moved(at, by)) for by in (1e-6, -1e-6))
        numeric = (up - down) / (2e-6 * seconds[at])
        left, right = (LatencyBounds().gradient(networks, moved(at, by)) for by in (-1e-6, 1e-6))
        assume(np.array_equal(left, right))  # no bound lies between
        scale = max(abs(objective.value(networks, tasks)) / seconds[at], 1e-12)
        assert gradient >= 0
        assert gradient == pytest.approx(numeric, rel=1e-3, abs=1e-8 * scale)


def test_bounds_met_end_a_network_s_claims() -> None:
    tasks = [progress(2.0), progress(3.0), progress(1.0)]
    fast = TunedNetwork((1.0, 1.0, 0.0), bound_s=5.5, name="fast")
    slow = TunedNetwork((0.0, 2.0, 1.0), bound_s=6.0, weight=2.0, name="slow")
    free = TunedNetwork((0.0, 0.0, 1.0))
    assert LatencyBounds().gradient([fast, slow], tasks).tolist() == [0.0, 4.0, 2.0]
    assert LatencyBounds().gradient([fast, free], tasks).tolist() == [0.0, 0.0, 1.0]
    assert LatencyBounds().value([fast, slow], tasks) == 5.5 + 2 * 7.0
    unknown = [progress(), *tasks[1:]]
    assert LatencyBounds().gradient([fast], unknown).tolist() == [1.0, 1.0, 0.0]


def test_speed_ups_count_alike_however_slow_the_network() -> None:
    tasks = [progress(100.0), progress(1.0)]
    networks = [
        TunedNetwork((1.0, 0.0), baseline_s=400.0),
        TunedNetwork((0.0, 1.0), baseline_s=1.0),
    ]
    assert GeometricMean().value(networks, tasks) == pytest.approx(-2.0)
    gradient = GeometricMean().gradient(networks, tasks) * [100.0, 1.0]
    assert gradient[0] == pytest.approx(gradient[1])
    rebased = [replace(network, baseline_s=None) for network in networks]
    ratio = GeometricMean().gradient(rebased, tasks) / GeometricMean().gradient(networks, tasks)
    assert ratio[0] == pytest.approx(ratio[1])


def test_tasks_that_stopped_improving_do_not_count() -> None:
    tasks = [progress(2.0, since_gain=48), progress(3.0, since_gain=47)]
    assert EarlyStop().gradient([TunedNetwork((1.0, 2.0))], tasks).tolist() == [0.0, 2.0]
    assert EarlyStop().value([TunedNetwork((1.0, 2.0))], tasks) == 8.0


def test_a_task_without_a_program_has_not_stopped_improving() -> None:
    tasks = [progress(INF, since_gain=60), progress(3.0, since_gain=60)]
    assert EarlyStop().gradient([TunedNetwork((1.0, 2.0))], tasks).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", OBJECTIVES.names)
def test_tasks_without_a_time_are_left_out(name: str) -> None:
    objective, tasks = OBJECTIVES.one(name), [progress(INF), progress(), progress(2.0)]
    networks = [TunedNetwork((1.0, 1.0, 1.0), bound_s=1.0), TunedNetwork((1.0, 0.0, 0.0))]
    assert np.isfinite(objective.value(networks, tasks))
    gradient = objective.gradient(networks, tasks)
    assert np.isfinite(gradient).all() and (gradient > 0).all()
    assert WeightedSum().value(networks, tasks) == 2.0


def with_figure(network: TunedNetwork, figure: str, value: float | None) -> TunedNetwork:
    return {
        "bound_s": replace(network, bound_s=value),
        "baseline_s": replace(network, baseline_s=value),
    }[figure]


@pytest.mark.parametrize("name", OBJECTIVES.names)
@settings(deadline=None)
@given(networks=NETWORKS, seconds=st.tuples(SECONDS, SECONDS, SECONDS))
def test_figures_that_are_not_read_make_no_difference(
    name: str, networks: list[TunedNetwork], seconds: tuple[float, float, float]
) -> None:
    objective, tasks = OBJECTIVES.one(name), [progress(s) for s in seconds]
    for figure in {"bound_s", "baseline_s"} - objective.reads:
        for value in (None, 1e-7, 100.0):
            others = [with_figure(network, figure, value) for network in networks]
            assert objective.value(others, tasks) == objective.value(networks, tasks)
            same = objective.gradient(others, tasks) == objective.gradient(networks, tasks)
            assert same.all()


@pytest.mark.parametrize("name", OBJECTIVES.names)
def test_figures_that_are_read_make_one(name: str) -> None:
    objective, tasks = OBJECTIVES.one(name), [progress(2.0)]
    for figure in objective.reads:
        low, high = (with_figure(TunedNetwork((1.0,)), figure, value) for value in (0.5, 8.0))
        assert objective.value([low], tasks) != objective.value([high], tasks)


def test_figures_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="bound_s of net must be positive: 0"):
        TunedNetwork((1.0,), bound_s=0.0, name="net")
