"""Seconds are counted once, whoever nests what."""

from __future__ import annotations

import doctest
import threading
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ansorpy.profiler
from ansorpy.profiler import Activity, Profiler, charge, profiled


@dataclass
class Clock:
    """Stands still until it is told to move."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_spans_are_merged_and_taken_once() -> None:
    clock = Clock()
    with Profiler(clock) as run:
        for _ in range(3):
            with profiled(Activity.SEARCH):
                clock.now += 1
                with profiled(Activity.RECORD):
                    clock.now += 0.0005  # too short to be shown
        with profiled(Activity.MODEL):
            clock.now += 2
        found = [(s.activity, s.start, round(s.end, 6)) for s in run.take_spans()]
        assert found == [(Activity.SEARCH, 0.0, 3.0015), (Activity.MODEL, 3.0015, 5.0015)]
        assert run.take_spans() == []


def test_the_innermost_activity_is_charged() -> None:
    clock = Clock()
    with Profiler(clock) as run:
        clock.now += 1
        with profiled(Activity.SEARCH):
            clock.now += 2
            with profiled(Activity.MODEL):
                clock.now += 4
            clock.now += 8
        clock.now += 16
    clock.now += 32
    assert run.seconds == {Activity.SEARCH: 10, Activity.MODEL: 4, Activity.OTHER: 17}
    assert sum(run.seconds.values()) == 31


def test_figures_are_there_while_it_runs_and_after_an_error() -> None:
    clock = Clock()
    with pytest.raises(KeyboardInterrupt), Profiler(clock) as run, profiled(Activity.BUILD):
        clock.now += 3
        assert run.seconds[Activity.BUILD] == 3
        clock.now += 4
        raise KeyboardInterrupt
    assert run.seconds == {Activity.BUILD: 7, Activity.OTHER: 0}


def test_an_inner_watch_counts_for_the_outer_too() -> None:
    clock = Clock()
    with Profiler(clock) as outer, profiled(Activity.OPEN):
        clock.now += 1
        with Profiler(clock) as inner:
            clock.now += 2
            with profiled(Activity.RUN):
                clock.now += 4
        clock.now += 8
    assert inner.seconds == {Activity.RUN: 4, Activity.OTHER: 2}
    assert outer.seconds == {Activity.OPEN: 11, Activity.RUN: 4, Activity.OTHER: 0}


def test_a_worker_s_report_moves_seconds_that_went_by() -> None:
    clock = Clock()
    with Profiler(clock) as run, profiled(Activity.RUN):
        clock.now += 5
        charge(Activity.CHECK, 2)
        charge(Activity.CHECK, 100)
    assert run.seconds == {Activity.CHECK: 5, Activity.RUN: 0, Activity.OTHER: 0}


def test_nobody_watches_other_threads_or_without_a_watch() -> None:
    clock = Clock()

    def work() -> None:
        with profiled(Activity.RUN):
            clock.now += 1

    work()
    charge(Activity.RUN, 1)
    with Profiler(clock) as run:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert run.seconds == {Activity.OTHER: 1}


@given(st.lists(st.tuples(st.sampled_from([*Activity, None]), st.floats(0, 10)), max_size=30))
def test_the_sum_is_the_time_that_went_by(walk: list[tuple[Activity | None, float]]) -> None:
    clock, depth = Clock(), 0
    with Profiler(clock) as run:
        for activity, seconds in walk:
            clock.now += seconds
            if activity is not None:
                run.enter(activity)
                depth += 1
            elif depth:
                run.leave()
                depth -= 1
    assert sum(run.seconds.values()) == pytest.approx(clock.now)


def test_examples_are_true() -> None:
    assert doctest.testmod(ansorpy.profiler).failed == 0
