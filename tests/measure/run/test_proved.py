"""Proved programs are checked at points and timed in this process, without a reference."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ansorpy.ir.builders import sum
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.build.built import Built
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.proved import ProvedRunner, points_of
from ansorpy.measure.run.runner import LocalRunner
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, task_of, tiled


class _Here:
    """Builds in this process; of *instead*, if given, in place of what is asked."""

    def __init__(self, instead: State | None = None) -> None:
        self._instead = instead

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [build_lowered(lower(self._instead or s), task.target, "f") for s in states]

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("n", "m", "k"), [(24, 40, 17), (1, 1, 1), (31, 7, 129)])
def test_a_right_program_is_timed(n: int, m: int, k: int) -> None:
    task = task_of(matmul(n, m, k, constant=True))
    with LocalRunner(builder=_Here()) as local:
        [result] = ProvedRunner(local).measure(task, [tiled(task.dag)], incumbent_s=None)
        assert not any(worker.is_alive for worker in local.workers)
    assert result.ok and result.median_s > 0 and result.object_digest
    assert 0 <= result.max_error < 1e-5


def test_a_wrong_program_is_found_at_a_point() -> None:
    a, b = placeholder((24, 17), name="A"), placeholder((17, 40), name="B")
    k = reduce_axis(17, name="k")
    c = compute((24, 40), lambda i, j: sum(a[i, k] * b[16 - k, j], axis=k), name="C")
    task, wrong = task_of(matmul()), State.initial([a, b, c])
    with LocalRunner(builder=_Here(wrong)) as local:
        [result] = ProvedRunner(local).measure(task, [tiled(task.dag)], incumbent_s=None)
    assert result.kind is TrialKind.WRONG_RESULT
    assert "the interpreter's is" in result.reason


def test_what_does_not_build_is_not_run() -> None:
    class Failing(_Here):
        def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
            return [MeasureResult(TrialKind.BUILD_ERROR, reason="no") for _ in states]

    task = task_of(matmul())
    with LocalRunner(builder=Failing()) as local:
        [result] = ProvedRunner(local).measure(task, [tiled(task.dag)], incumbent_s=None)
    assert result.kind is TrialKind.BUILD_ERROR and result.reason == "no"


def test_long_sums_are_checked_at_fewer_points() -> None:
    assert points_of(task_of(matmul(8, 8, 16)), 4096) == 4096
    assert points_of(task_of(matmul(8, 8, 4096)), 4096) == 256
    assert points_of(task_of(matmul(8, 8, 1 << 20)), 4096) == 128
