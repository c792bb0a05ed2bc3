"""Which of the candidates for all sizes serves which of them, by what is known of their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import cast

import pytest

import ansorpy as ap
from ansorpy.api.sized.candidates import SizedCandidate
from ansorpy.api.sized.task_group import TaskGroup
from ansorpy.api.sized.timer import Timer
from ansorpy.api.sized.times import Times
from ansorpy.ir.sizes import fixed
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State
from ansorpy.size_ranges import SizeRange
from ansorpy.target import Target

N = ap.dim("n", 1, 32)


def group() -> TaskGroup:
    """Calls of two sizes were observed, and others are possible."""
    x = ap.placeholder((N, 8), name="x")
    dag = ap.ComputeDAG([ap.compute((N, 8), lambda i, j: x[i, j] * 2.0, name="y")])
    observed = {dag.main_dim: SizeRange(1, 32, calls=((1, 4), (32, 4)))}
    return TaskGroup.of(dag, lambda dag, name: Task(dag, Target.host(), 1, name=name), observed)


def candidates(group: TaskGroup) -> tuple[SizedCandidate, SizedCandidate]:
    """One with tiles, and one without."""
    plain = State.initial(group.dag)
    tiled, _ = plain.split("y", "i", (4,))
    return SizedCandidate(group.dag, tiled.history), SizedCandidate(group.dag, plain.history)


@dataclass
class Told:
    """Stands for a timer, and its tuner, that measures nothing.

    Args:
        seconds: Recorded ones, by the number of steps of a program for all sizes and the size.
        predicted_s: Those of programs for one size, where they are not 2 ms.
    """

    seconds: Mapping[tuple[int, int], float]
    predicted_s: Mapping[int, float] = field(default_factory=dict)

    @property
    def tuner(self) -> Told:
        return self

    def predicted(self, task: Task, states: Sequence[State]) -> list[float]:
        [rows, _] = task.dag.outputs[0].shape
        return [self.predicted_s.get(fixed(rows), 2e-3) for _ in states]

    def recorded(self, task: Task, states: Sequence[State]) -> list[float | None]:
        size = dict(task.at).get("n", 0)
        return [self.seconds.get((len(state.history), size)) for state in states]


def test_what_fails_serves_no_size_even_if_no_call_of_it_is_expected() -> None:
    whole = group()
    sizes = Times(cast(Timer, Told({})), whole).sizes
    assert sizes[0] == 1 and sizes[-1] == 32 and len(sizes) > 2
    seconds = {(steps, size): 1e-3 / 10**steps for steps in (0, 1) for size in sizes}
    seconds |= {(1, size): inf for size in sizes[1:-1]}
    times = Times(cast(Timer, Told(seconds)), whole)
    tiled, plain = times.add(candidates(whole))
    assert times.path() == [tiled, *[plain] * (len(sizes) - 2), tiled]


def test_where_every_candidate_fails_at_some_size_there_is_no_path() -> None:
    whole = group()
    sizes = Times(cast(Timer, Told({})), whole).sizes
    times = Times(cast(Timer, Told({(1, sizes[0]): inf, (0, sizes[-1]): inf})), whole)
    tiled, plain = times.add(candidates(whole))
    assert times.path() == [plain, *[tiled] * (len(sizes) - 1)]
    times = Times(cast(Timer, Told({(1, sizes[0]): inf, (0, sizes[0]): inf})), whole)
    times.add(candidates(whole))
    assert times.path() == []


def test_a_prediction_without_end_says_nothing_about_other_sizes() -> None:
    whole = group()
    times = Times(cast(Timer, Told({(1, 1): 1e-3}, {1: inf})), whole)
    times.add(candidates(whole)[:1])
    [found] = times.logs()
    assert found == pytest.approx([log(1e-3), *[log(2e-3)] * (len(times.sizes) - 1)])
