"""Sums of 16-bit floats are added in float32, for every order of the loops that rules make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.sizes import at, fixed
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from benchmarks.cuda.rank import drawn_candidates
from tests.budget import explores
from tests.run_native import run_lowered, run_native

HALVES = (DType.FLOAT16, DType.BFLOAT16)
N, M, K = 2, 8, 1200


def product(
    dtype: DType, *, relu: bool = False, n: int = N, m: Extent = M, k: int = K
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


def test_the_buffer_of_a_stage_inside_another_is_wide() -> None:
    state = State.initial(product(DType.FLOAT16, relu=True, n=4, m=3, k=5))
    state = state.compute_at("C", "D", "i").reorder("C", ["i", "k", "j"])
    program = text(lower(state).run)
    assert "alloc C: float32[1, 3] in local" in program and "C.sums" not in program
    assert "D[i, j_2] = max(float16(C[0, j_2]), 0.0)" in program


def with_lanes_around(dtype: DType) -> State:
    """Each lane has a reduction of its own."""
    state = State.initial(product(dtype)).reorder("C", ["i", "k", "j"])
    return state.vectorize("C", ["j"]).reorder("C", ["i", "j", "k"])


def in_tiles(tail: Literal["guard", "shift", "even"]) -> Callable[[DType], State]:
    """The reduction outside of tiles that do not divide the columns."""

    def tiled(dtype: DType) -> State:
        state = State.initial(product(dtype, m=13))
        state, (outer, inner) = state.split("C", "j", (5,), tail=tail)
        return state.reorder("C", ["i", outer.name, "k", inner.name])

    return tiled


def in_parallel(dtype: DType) -> State:
    return State.initial(product(dtype)).reorder("C", ["k", "i", "j"]).parallel("C", ["i"])


def in_parts(dtype: DType) -> State:
    state, (outer, _) = State.initial(product(dtype)).split("C", "k", (100,))
    return state.rfactor("C", outer.name)[0]


def in_order(order: list[str]) -> Callable[[DType], State]:
    return lambda dtype: State.initial(product(dtype)).reorder("C", order)


SCHEDULES: Mapping[str, Callable[[DType], State]] = {
    **{"".join(order): in_order(order) for order in (["k", "i", "j"], ["i", "k", "j"], [*"ijk"])},
    **{tail: in_tiles(tail) for tail in ("guard", "shift", "even")},
    "lanes": with_lanes_around, "parallel": in_parallel, "rfactor": in_parts,
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("dtype", HALVES)
def test_no_schedule_adds_in_sixteen_bits(dtype: DType, schedule: str) -> None:
    assert error(SCHEDULES[schedule](dtype), dtype, native=True) <= bound(dtype)


def test_columns_of_any_number_inside_the_reduction() -> None:
    m = dim("m", 1, 40)
    state = State.initial(product(DType.FLOAT16, m=m)).reorder("C", ["i", "k", "j"])
    for size in (1, 7, 40):
        assert error(state, DType.FLOAT16, native=True, sizes={"m": size}) <= bound(DType.FLOAT16)


def test_a_product_of_many_values_is_rounded_once() -> None:
    a, r = placeholder((K, 4), DType.BFLOAT16, name="A"), reduce_axis(K, name="k")
    c = compute((4,), lambda i: ap.prod(a[r, i], axis=r), name="C")
    values = (1 + np.random.default_rng(0).uniform(-0.01, 0.01, (K, 4))).astype(a.dtype.numpy)
    want = values.astype(np.float64).prod(0)
    [found] = run_native(lower(State.initial([a, c]).reorder("C", ["k", "i"])), {"A": values})
    assert np.max(np.abs(found.astype(np.float64) / want - 1)) <= a.dtype.epsilon


@pytest.mark.parametrize("target", ["host", "sm_90"])
@pytest.mark.parametrize(("dtype", "relu"), [(DType.FLOAT16, False), (DType.BFLOAT16, True)])
def test_programs_of_the_rules_round_once(dtype: DType, target: str, relu: bool) -> None:
    machine = Target.host() if target == "host" else Target.parse(target)
    task = Task(ComputeDAG.of(product(dtype, relu=relu)), machine, 1)
    most = 12 if explores() else 3
    drawn = [state for state, _ in drawn_candidates(task, most, np.random.default_rng(0))]
    assert drawn
    for state in drawn:
        assert error(state, dtype, native=target == "host") <= bound(dtype), state.text()


def bound(dtype: DType) -> float:
    """Largest relative error: half a unit for the result, as much for products, a little more."""
    return 1.5 * dtype.epsilon


def error(
    state: State, dtype: DType, *, native: bool, sizes: Mapping[str, int] | None = None
) -> float:
    """Largest relative error of a program of *state*, whose terms are all positive."""
    rng = np.random.default_rng(1)
    known = {dim: (sizes or {})[dim.name] for dim in state.definition.dims}
    data = {
        op.name: rng.random([fixed(at(n, known)) for n in op.shape]).astype(dtype.numpy)
        for op in state.definition.args
    }
    lowered = lower(state)
    if native:
        [found] = run_native(lowered, data, sizes=known)
    else:
        [found] = run_lowered(lowered, data, run_program)
    a, b = (data[name].astype(np.float64) for name in "AB")
    return float(np.max(np.abs(found.astype(np.float64) / (a @ b) - 1)))
