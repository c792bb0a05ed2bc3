"""Seconds are counted once, whoever nests what."""

from __future__ import annotations

import doctest
import threading
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ansorpy.profiler
from ansorpy.profiler import Part, Phases, charge, phase


@dataclass
class Clock:
    """Stands still until it is told to move."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_innermost_phase_is_charged() -> None:
    clock = Clock()
    with Phases(clock) as run:
        clock.now += 1
        with phase(Part.SEARCH):
            clock.now += 2
            with phase(Part.MODEL):
                clock.now += 4
            clock.now += 8
        clock.now += 16
    clock.now += 32
    assert run.seconds == {Part.SEARCH: 10, Part.MODEL: 4, Part.OTHER: 17}
    assert run.total_s == 31


def test_figures_are_there_while_it_runs_and_after_an_error() -> None:
    clock = Clock()
    with pytest.raises(KeyboardInterrupt), Phases(clock) as run, phase(Part.BUILD):
        clock.now += 3
        assert run.seconds[Part.BUILD] == 3
        clock.now += 4
        raise KeyboardInterrupt
    assert run.seconds == {Part.BUILD: 7, Part.OTHER: 0}


def test_an_inner_watch_counts_for_the_outer_too() -> None:
    clock = Clock()
    with Phases(clock) as outer, phase(Part.OPEN):
        clock.now += 1
        with Phases(clock) as inner:
            clock.now += 2
            with phase(Part.RUN):
                clock.now += 4
        clock.now += 8
    assert inner.seconds == {Part.RUN: 4, Part.OTHER: 2}
    assert outer.seconds == {Part.OPEN: 11, Part.RUN: 4, Part.OTHER: 0}


def test_a_worker_s_report_moves_seconds_that_went_by() -> None:
    clock = Clock()
    with Phases(clock) as run, phase(Part.RUN):
        clock.now += 5
        charge(Part.CHECK, 2)
        charge(Part.CHECK, 100)
    assert run.seconds == {Part.CHECK: 5, Part.RUN: 0, Part.OTHER: 0}


def test_nobody_watches_other_threads_or_without_a_watch() -> None:
    clock = Clock()

    def work() -> None:
        with phase(Part.RUN):
            clock.now += 1

    work()
    charge(Part.RUN, 1)
    with Phases(clock) as run:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert run.seconds == {Part.OTHER: 1}


@given(st.lists(st.tuples(st.sampled_from([*Part, None]), st.floats(0, 10)), max_size=30))
def test_the_sum_is_the_time_that_went_by(walk: list[tuple[Part | None, float]]) -> None:
    clock, depth = Clock(), 0
    with Phases(clock) as run:
        for part, seconds in walk:
            clock.now += seconds
            if part is not None:
                run.enter(part)
                depth += 1
            elif depth:
                run.leave()
                depth -= 1
    assert run.total_s == pytest.approx(clock.now)


def test_examples_are_true() -> None:
    assert doctest.testmod(ansorpy.profiler).failed == 0
