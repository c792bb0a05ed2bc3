"""What is recorded of tasks, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ansorpy.errors import VerificationFailed
from ansorpy.ir.task import Task
from ansorpy.measure.program_dataset import MeasuredTask
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.tasks.record import Recorder, Skipped
from tests.datasets import QUICK_OPTIONS
from tests.search.runners import FormulaRunner
from tests.search.tasks import dense_relu, matmul

TASKS = [("a", matmul(24, 40, 36)), ("b", dense_relu(17, 40, 20)), ("b", matmul(64, 32, 16))]


class Expected(FormulaRunner):
    """Also notes what it is told to expect."""

    def expect(self, task: Task, candidates: Sequence[State]) -> None:
        self.batches.append(-len(candidates))


def _failed(state: State, number: int) -> MeasureResult | None:
    return MeasureResult(TrialKind.CRASH, reason="planted") if number % 5 == 0 else None


def test_programs_are_drawn_and_searched_while_the_next_task_is_built() -> None:
    runner = Expected(fails=_failed)
    found = list(Recorder(runner, QUICK_OPTIONS).record(TASKS))
    assert [(each.source, each.task) for each in found] == TASKS
    for each in found:
        assert isinstance(each, MeasuredTask) and len(each) == 12
        rows = {(s.steps, row.tobytes()) for s in each.sketches for row in s.table}
        assert len(rows) == 12  # none twice
        assert np.isinf(each.seconds).sum() in (2, 3)
    assert [n < 0 for n in runner.batches] == [False, True, False] * 2 + [False, False]


def test_a_search_finds_faster_programs_than_are_drawn() -> None:
    [drawn] = Recorder(FormulaRunner(), replace(QUICK_OPTIONS, drawn=1.0)).record(TASKS[2:])
    [searched] = Recorder(FormulaRunner(), replace(QUICK_OPTIONS, programs=24)).record(TASKS[2:])
    assert isinstance(drawn, MeasuredTask) and isinstance(searched, MeasuredTask)
    assert np.median(searched.seconds) < np.median(drawn.seconds)


def test_a_task_that_cannot_be_recorded_is_left_out_with_the_reason() -> None:
    class Broken(FormulaRunner):
        def answer(self, task: Task, state: State) -> MeasureResult:
            if task is TASKS[1][1]:
                raise VerificationFailed("planted")
            if task is TASKS[2][1]:
                raise ZeroDivisionError("planted, too")
            return super().answer(task, state)

    [first, second, third] = Recorder(Broken(), QUICK_OPTIONS).record(TASKS)
    assert isinstance(first, MeasuredTask)
    assert isinstance(second, Skipped) and second.reason == "planted"
    assert isinstance(third, Skipped)
    assert third.reason == "internal error: ZeroDivisionError: planted, too"


def test_a_task_whose_programs_take_long_is_left_out() -> None:
    [found] = Recorder(FormulaRunner(), replace(QUICK_OPTIONS, longest_s=1e-9)).record(TASKS[:1])
    assert isinstance(found, Skipped) and found.reason == "its programs would take too long"
