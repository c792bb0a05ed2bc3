"""Small tasks and schedules of them."""

from __future__ import annotations

from ansorpy.ir.builders import sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.state import State
from ansorpy.target import Target


def matmul(n: int = 24, m: int = 40, k: int = 17, *, constant: bool = False) -> ComputeDAG:
    a, b = placeholder((n, k), name="A"), placeholder((k, m), name="B", constant=constant)
    r = reduce_axis(k, name="k")
    c = compute((n, m), lambda i, j: sum(a[i, r] * b[r, j], axis=r), name="C")
    return ComputeDAG.of([a, b, c])


def task_of(dag: ComputeDAG, threads: int = 1, **kwargs: object) -> Task:
    return Task(dag, Target.host(), threads, name="test", **kwargs)  # type: ignore[arg-type]


def tiled(dag: ComputeDAG, *factors: int) -> State:
    """C with i split by the given inner factors."""
    return State.initial(dag).split("C", "i", factors)[0] if factors else State.initial(dag)
