from __future__ import annotations

from dataclasses import replace

import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.task import Task
from ansorpy.target import Target
from tests.ir.workloads import conv, matmul

TARGET = Target.parse("x86-64-v4")


def test_the_key_holds_all_that_decides_whether_a_record_fits() -> None:
    task = Task(matmul(), TARGET, 2)
    assert replace(task, name="other").key == task.key
    assert Task(matmul(), TARGET, 2).key == task.key
    others = [
        replace(task, dag=conv()), replace(task, threads=1), replace(task, precision="strict"),
        replace(task, reuse_distance_bytes=1 << 27),
        replace(task, target=Target.parse("x86-64-v3")),
    ]  # fmt: skip
    assert len({task.key, *(other.key for other in others)}) == 6


def test_work_and_traffic() -> None:
    task = Task(matmul(5, 3, 7), TARGET, 1)
    assert task.flops == flops(task.dag)
    assert task.bytes == 4 * (5 * 7 + 7 * 3 + 5 * 3)


def test_wrong_conditions_are_refused() -> None:
    for dag, target, message in (
        (matmul().outputs, TARGET, "is no ComputeDAG"), (matmul(), "host", "'host' is no Target"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            Task(dag, target, 1)  # type: ignore[arg-type]
    for threads in (0, 1.5, "2"):
        with pytest.raises(UsageError, match="threads must be a whole number of at least 1, got "):
            Task(matmul(), TARGET, threads)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no -1 bytes"):
        Task(matmul(), TARGET, 1, reuse_distance_bytes=-1)
    with pytest.raises(UsageError, match="unknown precision 'fast'"):
        Task(matmul(), TARGET, 1, precision="fast")  # type: ignore[arg-type]
