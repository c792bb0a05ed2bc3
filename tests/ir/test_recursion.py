"""Definitions as deep as they are long."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.recursion import DEEPEST
from ansorpy.ir.tensor import Tensor, compute, placeholder
from ansorpy.ir.text.serialize import dag_from_dict, dag_to_dict
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.properties.test_schedules import interpreted
from tests.run_native import run_native


def written_out(terms: int) -> list[Tensor]:
    a = placeholder((terms + 3,), name="A")

    def body(i: Expr) -> Expr:
        e = a[i]
        for t in range(1, terms):
            e = e + a[i + t]
        return e

    return [a, compute((4,), body, name="Y")]


def chained(stages: int) -> list[Tensor]:
    x = placeholder((4,), name="A")
    y: Tensor = x
    for n in range(stages):
        y = compute((4,), partial(_flattened, y), name=f"Y{n}")
    return [x, y]


def _flattened(x: Tensor, i: Expr) -> Expr:
    return x[i] * (1.5 - x[i] * 0.5)


def lowered_and_run(tensors: list[Tensor]) -> None:
    """What a schedule that inlines all stages computes is what the definition, once read, says."""
    dag = dag_from_dict(dag_to_dict(ComputeDAG.of(tensors)))
    state = State.initial(dag)
    for op in dag.computes[:-1]:
        state = state.compute_inline(op.name)
    data = {"A": np.random.default_rng(0).random(dag.args[0].shape, dtype=np.float32)}
    lowered = lower(state)
    [want], [got] = run_dag(dag, data), interpreted(lowered, data)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(run_native(lowered, data)[0], want, rtol=1e-5)
    assert flops(dag) > 0


@pytest.mark.parametrize(
    "definitions", [("written_out(300)", "written_out(1200)"), ("chained(100)", "chained(360)")]
)
def test_definitions_are_lowered_and_run_however_deep(definitions: tuple[str, str]) -> None:
    # In a process of its own, whose recursion limit no other test has raised; the deeper one last.
    calls = "; ".join(f"lowered_and_run({definition})" for definition in definitions)
    script = f"from tests.ir.test_recursion import *; {calls}"
    subprocess.run([sys.executable, "-c", script], check=True)


def lines_run(terms: int) -> int:
    """How many lines of Python it takes to write a sum of so many terms."""
    lines, before = 0, sys.gettrace()

    def count(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        written_out(terms)
    finally:
        sys.settrace(before)
    return lines


def test_the_work_for_a_long_sum_grows_with_its_length() -> None:
    lines_run(50)
    assert lines_run(400) < 5 * lines_run(100)


def test_what_is_too_deep_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="move parts of it to separate computes"):
        written_out(DEEPEST + 1)
