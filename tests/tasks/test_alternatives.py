"""Regions with alternatives: the fastest counts, others are tried while they may win."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ansorpy.graph.alternatives import Alternative, Alternatives
from ansorpy.tasks.alternatives import leader_calls
from ansorpy.tasks.objective import TunedNetwork, is_known, latency_s, misses
from ansorpy.tasks.objectives.latency_bounds import LatencyBounds
from ansorpy.tasks.objectives.weighted_sum import WeightedSum
from ansorpy.tasks.progress import TaskProgress
from tests.tasks.progress import progress

# Tasks: one that is always called, the single kernel, and the three that do the same.
REGION = Alternatives(
    (
        Alternative({"attention": "one kernel"}, {1: 4}),
        Alternative({"attention": "three kernels"}, {2: 4, 3: 4, 4: 8}),
    )
)
NETWORK = TunedNetwork((2.0, 0.0, 0.0, 0.0, 0.0), regions=(REGION,))


def tasks(*seconds: float | None, trials: int = 400, least_s: float = 0.0) -> list[TaskProgress]:
    """Progress of the five tasks; None: no correct program."""
    return [
        progress(*([] if s is None else [s]), trials_after=[trials], least_s=least_s)
        for s in seconds
    ]


def gradient(now: Sequence[TaskProgress]) -> list[float]:
    found: list[float] = WeightedSum().gradient([NETWORK], now).tolist()
    return found


@pytest.mark.parametrize(
    ("single", "rest", "total"), [(9.0, (1, 2, 3), 2 + 4 * 9), (10.0, (1, 2, 3), 2 + 36)]
)
def test_the_fastest_alternative_counts(
    single: float, rest: tuple[float, ...], total: float
) -> None:
    now = tasks(1.0, single, *rest)
    assert latency_s(NETWORK, now) == WeightedSum().value([NETWORK], now) == total
    fastest = [4.0, 0, 0, 0] if single == 9.0 else [0, 4.0, 4.0, 8.0]
    assert leader_calls(REGION, now).tolist() == [0.0, *fastest]


def test_what_cannot_win_any_more_claims_nothing() -> None:
    assert gradient(tasks(1.0, 5.0, 1, 2, 3)) == [2, 4, 0, 0, 0]
    assert gradient(tasks(1.0, 50.0, 1, 2, 3)) == [2, 0, 4, 4, 8]


def test_what_is_close_or_hardly_tried_goes_on_in_part() -> None:
    assert gradient(tasks(1.0, 9.4, 1, 2, 3)) == [2, 4, 2, 2, 4]
    assert gradient(tasks(1.0, 9.5, 1, 2, 3)) == [2, 2, 4, 4, 8]
    assert gradient(tasks(1.0, 6.4, 1, 2, 3, trials=16)) == [2, 4, 2, 2, 4], "25.6 and 36 * 2 / 3"
    assert gradient(tasks(1.0, 5.9, 1, 2, 3, trials=16)) == [2, 4, 0, 0, 0]
    assert gradient(tasks(1.0, 5.0, 900, 900, 900, trials=15)) == [2, 4, 2, 2, 4]
    bound = tasks(1.0, 5.0, 1, 2, 3, trials=15, least_s=1.3)
    assert gradient(bound) == [2, 4, 0, 0, 0], "four, four and eight times 1.3 are more than 20"


def test_while_no_alternative_is_complete_all_have_a_part() -> None:
    assert gradient(tasks(1.0, None, 1, 2, None)) == [2, 2, 2, 2, 4]
    assert not is_known(NETWORK, tasks(1.0, None, 1, 2, None))
    assert is_known(NETWORK, tasks(1.0, 3.0, 1, 2, None))
    assert not is_known(NETWORK, tasks(None, 3.0, 1, 2, None))
    ended = tasks(1.0, None, 1, 2, 3)
    ended[1] = progress(alive=False)
    assert gradient(ended) == [2, 0, 4, 4, 8]


def test_abandoned_tasks_are_expected_to_gain_no_more() -> None:
    now = tasks(1.0, 9.6, 1, 2, 3)
    assert gradient(now) == [2, 2, 4, 4, 8]
    now[1] = progress(9.6, trials_after=[400], alive=False)
    assert gradient(now) == [2, 0, 4, 4, 8]


def test_only_what_a_network_needs_is_missed() -> None:
    now = tasks(None, None, 1, 2, 3)
    assert [misses([NETWORK], now, at) for at in range(2)] == [True, False]
    now = tasks(1.0, None, 1, 2, None)
    assert misses([NETWORK], now, 1) and misses([NETWORK], now, 4)
    assert not misses([TunedNetwork((1.0, 0, 0, 0, 0))], now, 1)


def test_a_bound_is_met_by_the_fastest_alternative() -> None:
    network = TunedNetwork(NETWORK.calls, bound_s=23.0, regions=(REGION,))
    now = tasks(1.0, 5.0, 1, 2, None)
    assert LatencyBounds().gradient([network], now).tolist() == [0.0] * 5
    slower = tasks(1.0, 6.0, 1, 2, None)
    assert LatencyBounds().gradient([network], slower)[1] == 4.0


def test_claims_never_return_while_only_the_leader_improves() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        seconds = rng.uniform(1, 4, 5)
        trials = int(rng.integers(16, 60))
        now = tasks(*seconds, trials=trials)
        leader = leader_calls(REGION, now) > 0
        better = tasks(*np.where(leader, seconds * rng.uniform(0.5, 1, 5), seconds), trials=trials)
        behind = np.array(gradient(now)) == 0
        assert not (np.array(gradient(better))[behind] > 0).any()
