"""Small tasks and schedules of them."""

from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests import workloads


def matmul(n: int = 24, m: int = 40, k: int = 17, *, constant: bool = False) -> ComputeDAG:
    return ComputeDAG.of(workloads.matmul(n, m, k, constant=constant))


def task_of(dag: ComputeDAG, threads: int = 1, **kwargs: object) -> Task:
    return Task(dag, Target.host(), threads, name="test", **kwargs)  # type: ignore[arg-type]


def tiled(dag: ComputeDAG, *factors: int) -> State:
    """C with i split by the given inner factors."""
    return State.initial(dag).split("C", "i", factors)[0] if factors else State.initial(dag)
