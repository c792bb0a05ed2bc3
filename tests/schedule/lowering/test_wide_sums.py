"""Sums of 16-bit floats are rounded once, whatever the order of the loops."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import Program
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.cuda.rank import drawn_candidates
from tests.budget import some
from tests.run_native import run_lowered, run_native

HALVES = (DType.FLOAT16, DType.BFLOAT16)
N, M, K = 2, 8, 1200


def product(
    dtype: DType, *, relu: bool = False, n: int = N, m: int = M, k: int = K
) -> list[Tensor]:
    a, b = placeholder((n, k), dtype, name="A"), placeholder((k, m), dtype, name="B")
    r = reduce_axis(k, name="k")
    c = compute((n, m), lambda i, j: ap.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, compute((n, m), lambda i, j: ap.maximum(c[i, j], 0), name="D") if relu else c]


def test_a_reduction_outside_has_a_sum_for_each_element_inside() -> None:
    state = State.initial(product(DType.FLOAT16, n=4, m=3, k=5)).reorder("C", ["i", "k", "j"])
    assert text(lower(state).run).splitlines()[1:] == [
        "  for i in 0..4",
        "    alloc C.sums: float32[3] in local",
        "    for j in 0..3",
        "      C.sums[j] = 0.0",
        "    for k in 0..5",
        "      for j_1 in 0..3",
        "        C.sums[j_1] += float32(A[i, k] * B[k, j_1])",
        "    for j_2 in 0..3",
        "      C[i, j_2] = float16(C.sums[j_2])",
    ]


def test_maxima_and_wide_sums_need_no_buffer() -> None:
    a, r = placeholder((4, 9), DType.FLOAT16, name="A"), reduce_axis(9, name="k")
    highest = compute((4,), lambda i: ap.max(a[i, r], axis=r), name="C")
    for tensors in ([a, highest], product(DType.FLOAT32)):
        assert "C.sums" not in text(lower(State.initial(tensors)).run)


@pytest.mark.parametrize("order", [["k", "i", "j"], ["i", "k", "j"], ["i", "j", "k"]])
@pytest.mark.parametrize("dtype", HALVES)
def test_every_order_of_the_loops_rounds_once(dtype: DType, order: list[str]) -> None:
    state = State.initial(product(dtype)).reorder("C", order)
    assert error(state, dtype, native=True) <= bound(dtype)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("target", ["host", "sm_90"])
@pytest.mark.parametrize("dtype", HALVES)
def test_all_programs_of_the_rules_round_once(dtype: DType, target: str, relu: bool) -> None:
    machine = Target.host() if target == "host" else Target.parse(target)
    task = Task(ComputeDAG.of(product(dtype, relu=relu)), machine, 1)
    drawn = [state for state, _ in drawn_candidates(task, 12, np.random.default_rng(0))]
    for state in some(drawn):
        assert error(state, dtype, native=target == "host") <= bound(dtype), state.text()


def bound(dtype: DType) -> float:
    """Largest relative error: half a unit for the result, as much for products, a little more."""
    return 1.5 * dtype.epsilon


def error(state: State, dtype: DType, *, native: bool) -> float:
    """Largest relative error of a program of *state*, whose terms are all positive."""
    rng = np.random.default_rng(1)
    wide = {"A": rng.random((N, K)), "B": rng.random((K, M))}
    data = {name: array.astype(dtype.numpy) for name, array in wide.items()}
    lowered = lower(state)
    [found] = run_native(lowered, data) if native else run_lowered(lowered, data, _interpreted)
    a, b = (data[name].astype(np.float64) for name in "AB")
    return float(np.max(np.abs(found.astype(np.float64) / (a @ b) - 1)))


def _interpreted(program: Program, arrays: list[np.ndarray]) -> None:
    run_program(program, arrays)
