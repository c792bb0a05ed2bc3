"""A question may take what the limits of its parts add up to, and no more."""

from __future__ import annotations

import pytest

from ansorpy.measure.fleet.patience import Deadlines, Patience
from ansorpy.measure.run.limits import STARVED, run_limit_s
from ansorpy.measure.run.runner import MeasureOptions
from tests.measure.definitions import matmul, task_of

OPTIONS = MeasureOptions(build_timeout_s=7.0, run_timeout_s=11.0, reference_timeout_s=130.0)
PATIENCE = Patience(grace_s=3.0, uneven=4.0)
TASK = task_of(matmul())
BYTES_S = sum(op.bytes for op in TASK.dag.ops) / 20e6


def test_limits_are_those_of_the_workers_added_up():
    deadlines = Deadlines(OPTIONS, PATIENCE)
    prepare_s = 2 * 7.0 + 3 * 130.0
    assert [deadlines.build_s(n, 4) for n in (1, 4, 5, 9)] == [10.0, 10.0, 17.0, 24.0]
    want = 3.0 + prepare_s + STARVED * (11.0 + BYTES_S)
    assert deadlines.run_s(TASK, None) == pytest.approx(want)
    assert deadlines.retime_s(TASK, 3) == pytest.approx(3.0 + prepare_s + 3 * (18.0 + BYTES_S))


def test_preparing_a_task_takes_no_node_much_longer_than_another():
    deadlines = Deadlines(OPTIONS, PATIENCE)
    for seconds in (0.5, 2.0, 1.0):
        deadlines.note(TASK, seconds)
    run_s = STARVED * run_limit_s(TASK, 11.0, 1e-3)
    assert deadlines.run_s(TASK, 1e-3) == pytest.approx(3.0 + 4.0 * 2.0 + run_s)
    assert deadlines.retime_s(TASK, 1) == pytest.approx(3.0 + 4.0 * 2.0 + 18.0 + BYTES_S)
    other = task_of(matmul(25))
    assert deadlines.run_s(other, None) > 400.0
    deadlines.note(TASK, 1e6)
    assert deadlines.retime_s(TASK, 1) < 450.0


def test_a_run_may_take_200_times_the_best_and_a_second():
    assert run_limit_s(TASK, 11.0, None) == pytest.approx(11.0 + BYTES_S)
    assert run_limit_s(TASK, 11.0, 1e-3) == pytest.approx(1.2 + BYTES_S)
    assert run_limit_s(TASK, 11.0, 1.0) == pytest.approx(11.0 + BYTES_S)
