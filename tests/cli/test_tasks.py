"""Tasks are named by number, by name, or by a part of it that only one has."""

from __future__ import annotations

import pytest

from ansorpy.cli.tasks import selected
from ansorpy.errors import UsageError
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.target import Target


def _task(name: str) -> Task:
    a = placeholder((3,), name="A")
    dag = ComputeDAG.of([a, compute((3,), lambda i: a[i] + 1.0, name="B")])
    return Task(dag, Target.parse("x86-64-v3"), 1, name=name)


TASKS = [_task(name) for name in ("conv3x3", "conv3x3_relu", "pool")]


@pytest.mark.parametrize(("wanted", "at"), [("2", 2), ("pool", 2), ("po", 2), ("conv3x3", 0)])
def test_one_task(wanted: str, at: int) -> None:
    assert selected(TASKS, wanted) == [TASKS[at]]


def test_all_tasks() -> None:
    assert selected(TASKS, None) == TASKS


@pytest.mark.parametrize(("wanted", "message"), [("conv", "2 tasks match"), ("7", "no task '7'")])
def test_refusals_list_the_tasks(wanted: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        selected(TASKS, wanted)
    assert "1 conv3x3_relu" in str(caught.value.hint)
