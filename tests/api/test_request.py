"""Requests: defaults, budgets, targets that cannot be timed here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ansorpy as ap
from ansorpy.api.request import Request, as_target
from ansorpy.config import available_cores
from ansorpy.errors import MissingDependency, UsageError
from ansorpy.target import Target
from ansorpy.tasks.budget import Budget


def test_budgets_follow_effort_and_explicit_limits() -> None:
    assert Request.of(effort="none").budget is None
    quick = Request.of(effort="quick").budget
    assert quick is not None and quick.time_limit_s == 300 and quick.trials is None
    operator = Request.of(network=False, effort="full").budget
    assert operator is not None and operator.time_limit_s == 180
    explicit = Request.of(effort="none", trials=5).budget
    assert explicit is not None and explicit.trials == 5 and explicit.time_limit_s is None
    assert Request.of(time_limit="1h30m").budget == Budget(time_limit_s=5400)


def test_other_machines_are_not_timed() -> None:
    arch = Target.host().triple.split("-")[0]
    other = Target.parse("cortex-a76" if arch == "x86_64" else "x86-64-v2")
    assert Request.of(effort="none", target=other).budget is None
    with pytest.raises(UsageError, match="cannot be timed on this machine"):
        Request.of(effort="quick", target=other)


def test_targets_by_name_value_and_default() -> None:
    assert as_target(None) is Target.host()
    assert as_target(Target.parse("x86-64-v3")).name == "x86-64-v3"


def test_a_search_for_a_gpu_that_is_not_here_says_what_is_missing() -> None:
    gpu = as_target("sm_90")
    if gpu.gpus():
        pytest.skip("this machine has a GPU")
    assert Request.of(effort="none", target=gpu).budget is None
    with pytest.raises(MissingDependency, match="cupy|no CUDA device") as caught:
        Request.of(effort="quick", target=gpu)
    assert caught.value.exit_code == 5


def test_a_gpu_takes_one_thread_of_the_host() -> None:
    gpu = as_target("sm_90")
    assert gpu.threads(None) == gpu.threads(1) == 1
    assert Target.host().threads(3) == 3
    with pytest.raises(UsageError, match="make no difference to a GPU"):
        gpu.threads(4)
    for target in (gpu, Target.host(), Target.parse("c")):
        with pytest.raises(UsageError, match="threads must be a whole number of at least 1, got 0"):
            target.threads(0)


def test_numbers_of_numpy_become_plain() -> None:
    numbers: dict[str, Any] = {"threads": np.int64(1), "seed": np.int64(7)}
    request = Request.of(effort="none", **numbers)
    assert type(request.threads) is int and type(request.seed) is int


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"threads": True}, "threads must be a whole number of at least 1, got True"),
        ({"threads": "2"}, "at least 1, got '2'"),
        ({"threads": 1.5}, "got 1.5"),
        ({"seed": "a"}, "seed must be a whole number of at least 0, got 'a'"),
        ({"seed": -1}, "got -1"),
        ({"seed": True}, "got True"),
        ({"trials": True}, "trials must be a whole number, got True"),
        ({"time_limit": True}, "time_limit must be a number, got True"),
        ({"db": b"t.db"}, "a database is given by its path, not by bytes"),
        ({"seed": 1 << 63}, "seed must be at most 9223372036854775807, got 9223372036854775808"),
        ({"workers": 4}, "4 is not an address of workers"),
        ({"workers": None, "effort": "none"}, "None is not an address of workers"),
        ({"effort": "slow"}, 'unknown effort "slow"'),
        ({"precision": "exact"}, 'unknown precision "exact"(.|\n)*default, strict, tf32'),
        ({"time_limit": "soon"}, "'soon' is not a duration"),
        ({"colour": "red"}, 'there is no option "colour"(.|\n)*effort, trials'),
    ],
)
def test_figures_that_are_none_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Request.of(**arguments)


def test_more_threads_than_cores_are_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    cores = available_cores()
    request = Request.of(effort="none", threads=cores + 1)
    assert replace(request, seed=7).threads == cores + 1
    assert caplog.messages == [
        f"{cores + 1} threads will share the {cores} cores that this process may use"
    ]
    caplog.clear()
    Request.of(effort="none", threads=cores)
    Request.of(effort="none", threads=cores + 1, workers="ray://head:10001")
    assert not caplog.messages


def test_what_is_no_target_is_refused() -> None:
    with pytest.raises(UsageError, match="3 is not a target"):
        as_target(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds", [{}, {"trials": 4}])
def test_no_rules_are_refused(bounds: dict[str, int]) -> None:
    x = ap.placeholder((4,), name="x")
    y = ap.compute((4,), lambda i: x[i] + 1.0, name="y")
    with pytest.raises(UsageError, match="there are no rules"):
        ap.tune([x, y], rules=[], **bounds)  # type: ignore[arg-type]
    wrong: tuple[Any, ...] = (5, "rules", [5])
    for rules in wrong:
        with pytest.raises(UsageError, match="is not a sketch rule"):
            ap.tune([x, y], rules=rules, **bounds)  # type: ignore[arg-type]
