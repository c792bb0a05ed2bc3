"""Tasks for the cost models' tests."""

from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.target import Target
from tests.cost.nests import matmul_op


def matmul_task(n: int, m: int, k: int, threads: int = 2) -> Task:
    _, _, c = matmul_op(n, m, k)
    return Task(ComputeDAG([c]), Target.parse("x86-64-v4"), threads)
