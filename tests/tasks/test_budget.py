"""Presets, explicit limits and round sizes."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.tasks.budget import Budget


def test_presets_are_wall_clock_limits() -> None:
    assert Budget.of("quick", network=True) == Budget(time_limit_s=300, plateau=64)
    assert Budget.of("quick", network=False) == Budget(time_limit_s=30, plateau=64)
    assert Budget.of("full", network=True) == Budget(time_limit_s=1800, plateau=160)
    assert Budget.of("full", network=False) == Budget(time_limit_s=180, plateau=160)
    assert Budget.of("none", network=True) is None


def test_an_explicit_limit_replaces_the_preset() -> None:
    assert Budget.of("full", network=True, trials=9) == Budget(trials=9)
    assert Budget.of("none", network=True, trials_per_task=9) == Budget(trials_per_task=9)
    assert Budget.of("quick", network=True, time_limit=7.5) == Budget(time_limit_s=7.5)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(UsageError, match='unknown effort "slow"'):
        Budget.of("slow", network=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="trials must be positive, got 0"):
        Budget(trials=0)
    for wrong in ({"trials": 1.5}, {"trials_per_task": "8"}, {"time_limit_s": "5m"}):
        with pytest.raises(UsageError, match="must be a (whole )?number, got"):
            Budget(**wrong)
    with pytest.raises(UsageError, match="must be positive, got nan"):
        Budget(time_limit_s=float("nan"))
    with pytest.raises(UsageError, match="must be positive, got -inf"):
        Budget(time_limit_s=float("-inf"))


def test_numbers_of_numpy_are_limits_too() -> None:
    limits = {"trials": 64, "trials_per_task": 8, "time_limit_s": 7.5, "plateau": 4}
    given: dict[str, Any] = {name: np.asarray(limit)[()] for name, limit in limits.items()}
    budget = Budget(**given)
    assert json.loads(json.dumps(asdict(budget))) == limits


@pytest.mark.parametrize("seconds", [float("inf"), 1e308, pytest.param(10**400, id="1e400")])
def test_a_time_limit_beyond_all_plans_is_refused(seconds: float) -> None:
    with pytest.raises(
        UsageError, match=r"^time_limit must be at most 1e\+09 seconds, got"
    ) as told:
        Budget(time_limit_s=seconds)
    assert told.value.hint == "for no time limit, limit the trials instead"


@pytest.mark.parametrize(
    ("budget", "tasks", "size"),
    [
        (Budget(trials=64), 1, 16),
        (Budget(trials=3), 1, 2),
        (Budget(trials_per_task=7), 9, 2),
        (Budget(trials=1), 1, 1),
        (Budget(trials=10), 40, 1),
        (Budget(trials=10**6), 1, 32),
        (Budget(trials_per_task=64), 40, 16),
        (Budget(trials=80, trials_per_task=64), 2, 10),
        (Budget(time_limit_s=300), 40, 32),
    ],
)
def test_rounds_leave_time_to_learn(budget: Budget, tasks: int, size: int) -> None:
    assert budget.round_size(tasks) == size
