"""Alternatives of a region: their names, and which takes least by the times of tasks."""

from __future__ import annotations

import math

import pytest

from ansorpy.graph.alternatives import Alternative, Alternatives

REGION = Alternatives(
    (
        Alternative({"attention": "one kernel"}, {"one": 2}),
        Alternative({"attention": "three kernels", "batch": "whole"}, {"a": 2, "b": 2, "c": 4}),
    )
)
SECONDS = {"one": 7.0, "a": 1.0, "b": 1.0, "c": 2.5}


def test_questions_and_answers_name_it() -> None:
    assert REGION.name == "attention, batch"
    assert [option.name for option in REGION.options] == ["one kernel", "three kernels, whole"]
    assert REGION.most_calls == {"one": 2, "a": 2, "b": 2, "c": 4}


def test_times_add_up_and_the_fastest_is_taken() -> None:
    assert not REGION.is_timed and REGION.fastest == 0
    timed = REGION.timed(SECONDS)
    assert [option.seconds for option in timed.options] == [14.0, 14.0]
    assert timed.is_timed and timed.fastest == 0
    assert REGION.timed(SECONDS | {"b": 0.9}).fastest == 0  # which could be what caches hold
    assert REGION.timed(SECONDS | {"b": 0.6}).fastest == 1


@pytest.mark.parametrize("unknown", [None, math.inf])
def test_an_alternative_is_as_unknown_as_one_of_its_tasks(unknown: float | None) -> None:
    timed = REGION.timed(SECONDS | {"one": unknown})
    assert [option.seconds for option in timed.options] == [None, 14.0]
    assert timed.is_timed and timed.fastest == 1
    nothing = timed.timed(SECONDS | {"one": unknown, "c": unknown})
    assert not nothing.is_timed and nothing.fastest == 0


def test_the_calls_of_a_task_may_be_spread_over_others() -> None:
    spread = REGION.spread(
        lambda calls: {f"{key}{n}": count / 2 for key, count in calls.items() for n in range(2)}
    )
    assert spread.options[0].calls == {"one0": 1.0, "one1": 1.0}
    assert spread.name == REGION.name
