"""Programs are checked at points in this process, without a reference and without timing."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from ansorpy.errors import AnsorpyError
from ansorpy.ir.builders import select, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.check.guard import GuardedArray
from ansorpy.measure.result import TrialKind
from ansorpy.measure.run.untimed import checked, points_of
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, task_of, tiled


def _built(state: State) -> Built:
    return build_lowered(lower(state), task_of(state.definition).target, "f")


@pytest.mark.parametrize(("n", "m", "k"), [(24, 40, 17), (1, 1, 1), (31, 7, 129)])
def test_a_right_program_is_checked_and_has_no_time(n: int, m: int, k: int) -> None:
    task = task_of(matmul(n, m, k, constant=True))
    state = tiled(task.dag)
    built = _built(state)
    result = checked(task, state, built, seed=0)
    assert result.kind is TrialKind.CHECKED and not result.ok
    assert result.seconds == () and result.median_s == math.inf
    assert result.object_digest == built.digest
    assert 0 <= result.max_error < 1e-5


def test_a_wrong_program_is_found_at_a_point() -> None:
    a, b = placeholder((24, 17), name="A"), placeholder((17, 40), name="B")
    k = reduce_axis(17, name="k")
    c = compute((24, 40), lambda i, j: sum(a[i, k] * b[16 - k, j], axis=k), name="C")
    task, wrong = task_of(matmul()), State.initial([a, b, c])
    result = checked(task, wrong, _built(wrong), seed=0)
    assert result.kind is TrialKind.WRONG_RESULT
    assert "the interpreter's is" in result.reason


def test_integers_that_float64_has_not_are_compared() -> None:
    a = placeholder((24, 17), "int64", name="A")

    def moved(by: int) -> State:
        return State.initial([a, compute((24, 17), lambda i, j: a[i, j] + by, name="C")])

    right, wrong = moved(1 << 60), moved((1 << 60) + 1)
    task = task_of(right.definition)
    assert checked(task, right, _built(right), seed=0).kind is TrialKind.CHECKED
    result = checked(task, wrong, _built(wrong), seed=0)
    assert result.kind is TrialKind.WRONG_RESULT and result.max_error == math.inf
    assert re.search(r"the interpreter's is 11529215046068469\d\d$", result.reason)


def test_zeros_are_not_taken_for_small_values() -> None:
    a = placeholder((24, 17), name="A")
    small = compute((24, 17), lambda i, j: a[i, j] * 1e-12, name="C")
    zero = compute((24, 17), lambda i, j: select(a[i, j] > 1e30, a[i, j], 0.0), name="C")
    task, right, wrong = (
        task_of(ComputeDAG.of([a, small])), State.initial([a, small]), State.initial([a, zero]),
    )  # fmt: skip
    assert checked(task, right, _built(right), seed=0).kind is TrialKind.CHECKED
    assert checked(task, wrong, _built(wrong), seed=0).kind is TrialKind.WRONG_RESULT


def test_code_that_cannot_be_loaded_is_an_error_of_the_program() -> None:
    task = task_of(matmul())
    state = tiled(task.dag)
    whole = _built(state)
    broken = replace(whole, run=replace(whole.run, symbol="g"))
    result = checked(task, state, broken, seed=0)
    assert result.kind is TrialKind.RUN_ERROR and result.reason


def test_inputs_that_cannot_be_made_are_no_error_of_the_whole_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(guarded: GuardedArray) -> None:
        raise AnsorpyError("this system refuses to protect memory")

    task = task_of(matmul())
    state = tiled(task.dag)
    built = _built(state)
    monkeypatch.setattr(GuardedArray, "seal", refuse)
    result = checked(task, state, built, seed=0)
    assert result.kind is TrialKind.RUN_ERROR and "refuses" in result.reason


def test_long_sums_are_checked_at_fewer_points() -> None:
    assert points_of(task_of(matmul(8, 8, 16))) == 4096
    assert points_of(task_of(matmul(8, 8, 4096))) == 256
    assert points_of(task_of(matmul(8, 8, 1 << 20))) == 128
