"""Requests: defaults, budgets, targets that cannot be timed here."""

from __future__ import annotations

import pytest

from ansorpy.api.request import Request, as_target
from ansorpy.errors import UsageError
from ansorpy.target import Target


def test_budgets_follow_effort_and_explicit_limits() -> None:
    assert Request(effort="none").budget(network=True) is None
    quick = Request(effort="quick").budget(network=True)
    assert quick is not None and quick.time_limit_s == 300 and quick.trials is None
    operator = Request(effort="full").budget(network=False)
    assert operator is not None and operator.time_limit_s == 180
    explicit = Request(effort="none", trials=5).budget(network=True)
    assert explicit is not None and explicit.trials == 5 and explicit.time_limit_s is None


def test_other_machines_are_not_timed() -> None:
    arch = Target.host().triple.split("-")[0]
    other = Target.parse("cortex-a76" if arch == "x86_64" else "x86-64-v2")
    assert Request(effort="none", target=other).budget(network=True) is None
    with pytest.raises(UsageError, match="cannot be timed on this machine"):
        Request(effort="quick", target=other).budget(network=True)


def test_targets_by_name_value_and_default() -> None:
    assert as_target(None) is Target.host()
    assert as_target(Target.parse("x86-64-v3")).name == "x86-64-v3"


def test_targets_without_a_code_generator_are_refused() -> None:
    with pytest.raises(UsageError, match="programs for sm_90 can be compiled, but neither"):
        as_target("sm_90")


def test_no_threads_is_refused() -> None:
    with pytest.raises(UsageError, match="threads must be at least 1"):
        Request(threads=0)
