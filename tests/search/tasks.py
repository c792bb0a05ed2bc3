"""Small tasks for the tests of search and task scheduling, each made once for the process."""

from __future__ import annotations

from functools import cache

from ansorpy.ir.builders import maximum, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.target import Target
from tests import workloads

TARGET = Target.parse("x86-64-v4")


@cache
def matmul(n: int, m: int, k: int, threads: int = 2) -> Task:
    dag = ComputeDAG.of(workloads.matmul(n, m, k))
    return Task(dag, TARGET, threads, name=f"matmul_{n}_{m}_{k}")


@cache
def dense_relu(n: int, m: int, k: int, threads: int = 2) -> Task:
    """A matrix product with constant weights, a bias and a relu."""
    a, w = placeholder((n, k), name="A"), placeholder((k, m), name="W", constant=True)
    bias = placeholder((m,), name="bias", constant=True)
    r = reduce_axis(k, name="k")
    c = compute((n, m), lambda i, j: sum(a[i, r] * w[r, j], axis=r), name="C")
    d = compute((n, m), lambda i, j: maximum(c[i, j] + bias[j], 0.0), name="D")
    return Task(ComputeDAG([d]), TARGET, threads, name=f"dense_{n}_{m}_{k}")


@cache
def scale(n: int, threads: int = 2) -> Task:
    """One elementwise stage: few placed sketches, few rows."""
    a = placeholder((n,), name="A")
    b = compute((n,), lambda i: a[i] * 2.0, name="B")
    return Task(ComputeDAG([b]), TARGET, threads, name=f"scale_{n}")


@cache
def sampler(task: Task) -> SketchSampler:
    """The sampler of *task*: its sketches and the formulas of its placed sketches are made once."""
    return SketchSampler(task)
