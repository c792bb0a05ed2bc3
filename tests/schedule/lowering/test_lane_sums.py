"""Reductions whose lanes sum apart: what the step refuses, how it lowers, what it computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from ansorpy.codegen.llvm.emit.program import emit_llvm
from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as ap
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.extents import dim_extent
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.symbols import Dim
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_from_json, steps_to_json
from ansorpy.target import Target
from tests import workloads
from tests.budget import examples
from tests.run_native import run_native

Reducer = Callable[[Expr, Axis], Expr]


def reduced(reducer: Reducer, n: int, k: int, dtype: DType = DType.FLOAT32) -> list[Tensor]:
    a = placeholder((n, k), dtype, name="A")
    r = reduce_axis(k, name="k")
    return [a, compute((n,), lambda i: reducer(a[i, r], r), name="B")]


def test_full_parts_run_in_a_loop_and_the_rest_behind_it() -> None:
    state, (outer, lane) = State.initial(reduced(ap.sum, 2, 11)).split_lanes("B", "k", 4)
    assert (outer.name, lane.name) == ("k.0", "k.1")
    assert "for k.1 in 0..4  # lanes of a reduction" in state.text()
    assert text(lower(state).run).splitlines()[1:] == [
        "  for i in 0..2",
        "    alloc B.lanes: float32[4] in local",
        "    for lane in 0..4  # vectorized",
        "      B.lanes[lane] = 0.0",
        "    for k.0 in 0..2",
        "      for k.1 in 0..4  # vectorized",
        "        B.lanes[k.1] += A[i, k.0 * 4 + k.1]",
        "    for k.1_1 in 0..3  # vectorized",
        "      B.lanes[k.1_1] += A[i, k.1_1 + 8]",
        "    for lane_1 in 0..2  # vectorized",
        "      B.lanes[lane_1] += B.lanes[lane_1 + 2]",
        "    for lane_2 in 0..1  # vectorized",
        "      B.lanes[lane_2] += B.lanes[lane_2 + 1]",
        "    B[i] = B.lanes[0]",
    ]


def test_an_unfinished_order_of_lanes_is_kept_by_a_guard() -> None:
    """Split again, the outer loop no longer counts parts: a condition skips what is beyond."""
    state, _ = State.initial(reduced(ap.sum, 2, 11)).split_lanes("B", "k", 4)
    state, _ = state.split("B", "k.0", (2,))
    assert "if " in text(lower(state).run)
    a = np.arange(22, dtype=np.float32).reshape(2, 11)
    assert np.array_equal(run_native(lower(state), {"A": a})[0], a.sum(axis=1))


def test_a_rest_of_one_lane_beyond_a_fused_loop_adds_nothing() -> None:
    """Two loops of 3 and 2 have 6 iterations, of which the last is beyond the 5 terms."""
    x, r = placeholder((12,), name="X"), reduce_axis(5, name="k")
    y = compute((8,), lambda i: ap.sum(x[i + r], axis=r), name="Y")
    state, parts = State.initial([x, y]).split("Y", "k", (2,))
    state, fused = state.fuse("Y", parts)
    state, _ = state.split_lanes("Y", fused, 5)
    given = np.arange(12, dtype=np.float32)
    [found] = run_native(lower(state), {"X": given})
    assert found.tolist() == [given[i : i + 5].sum() for i in range(8)]


@pytest.mark.parametrize(
    ("loop", "lanes", "message"),
    [
        ("i", 4, "only a reduce loop can have lanes with partial sums"),
        ("k", 0, "0 is too small"),
    ],
)
def test_refusals(loop: str, lanes: int, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        State.initial(workloads.min_reduce(4, 8)).split_lanes("B", loop, lanes)


def test_one_loop_of_a_stage_has_lanes() -> None:
    state, _ = State.initial(workloads.matrix_norm(2, 3, 8)).split_lanes("squares", "c", 4)
    with pytest.raises(ScheduleError, match='the lanes of loop "c.1" have partial sums already'):
        state.split_lanes("squares", "r", 2)


def test_the_number_of_lanes_can_be_open_and_is_recorded() -> None:
    state, _ = State.initial(workloads.min_reduce(4, 64)).split_lanes("B", "k", OneOf((8, 16)))
    space = Space(state)
    assert space.columns == ("B.lanes",)
    bound = space.resolve([16])
    assert "state, _ = state.split_lanes('B', 'k', 16)" in str(bound.history)
    again = State.replay(bound.definition, steps_from_json(steps_to_json(bound.history)))
    assert again.text() == bound.text()


@examples(25)
@given(
    reducer=sampled_from([ap.sum, ap.max, ap.min, ap.prod]), n=integers(1, 4), k=integers(1, 150),
    lanes=sampled_from([1, 3, 8, 16, 48, 64, 128]), seed=integers(0, 2**32 - 1),
)  # fmt: skip
def test_machine_code_equals_the_interpreter_bit_for_bit(
    reducer: Reducer, n: int, k: int, lanes: int, seed: int
) -> None:
    """The order of additions is the program's: nothing below re-associates."""
    definition = reduced(reducer, n, k)
    state, _ = State.initial(definition).split_lanes("B", "k", lanes)
    lowered = lower(state)
    a = np.random.default_rng(seed).uniform(0.5, 1.5, (n, k)).astype(np.float32)
    interpreted = np.empty(n, np.float32)
    run_program(lowered.run, [a, interpreted])
    [native] = run_native(lowered, {"A": a})
    assert np.array_equal(native, interpreted)
    [expected] = run_dag(state.definition, {"A": a}, dtype=DType.FLOAT64)
    np.testing.assert_allclose(native, expected, rtol=3e-5)


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT8, DType.FLOAT64])
@pytest.mark.parametrize("k", [7, 64, 67])
def test_other_types(dtype: DType, k: int, rng: np.random.Generator) -> None:
    state, _ = State.initial(reduced(ap.max, 3, k, dtype)).split_lanes("B", "k", 32)
    a = rng.integers(-100, 100, (3, k)).astype(dtype.numpy)
    assert np.array_equal(run_native(lower(state), {"A": a})[0], a.max(axis=1))


def test_half_floats_are_summed_in_single_precision() -> None:
    state, _ = State.initial(reduced(ap.sum, 2, 40, DType.FLOAT16)).split_lanes("B", "k", 16)
    assert "alloc B.lanes: float32[16]" in text(lower(state).run)
    a = np.full((2, 40), 0.1, np.float16)
    [got] = run_native(lower(state), {"A": a})
    np.testing.assert_allclose(got, a.astype(np.float32).sum(axis=1).astype(np.float16))


def test_rows_of_a_block_sum_apart_inside_the_reduction(rng: np.random.Generator) -> None:
    state, (_, inner) = State.initial(reduced(ap.sum, 12, 70)).split("B", "i", (3,))
    state, (steps, lane) = state.split_lanes("B", "k", 16)
    state = state.reorder("B", ["i.0", steps, inner, lane]).unroll("B", inner)
    assert "alloc B.lanes: float32[3, 16] in local" in text(lower(state).run)
    a = rng.standard_normal((12, 70)).astype(np.float32)
    [got] = run_native(lower(state), {"A": a})
    np.testing.assert_allclose(got, a.sum(axis=1), rtol=1e-4, atol=1e-5)


def test_fused_loops_read_contiguously() -> None:
    """``x // n * n + x % n`` is ``x``: vector loads, no gather, whatever the number of lanes."""
    state, fused = State.initial(workloads.matrix_norm(2, 12, 28)).fuse("squares", ["r", "c"])
    state, _ = state.split_lanes("squares", fused, 16)
    code = emit_llvm(lower(state).run, Target.host(), "kernel")
    assert "gather" not in code
    x = np.random.default_rng(0).standard_normal((2, 12, 28)).astype(np.float32)
    [got] = run_native(lower(state), {"X": x})
    np.testing.assert_allclose(got, np.sqrt((x * x).sum(axis=(1, 2))), rtol=1e-5)


def test_a_short_tail_stays_in_registers() -> None:
    """Masked stores into the sums would force them into memory."""
    state, _ = State.initial(reduced(ap.sum, 4, 101)).split_lanes("B", "k", 32)
    assert "masked.store" not in emit_llvm(lower(state).run, Target.host(), "kernel")


@pytest.mark.parametrize(("low", "high"), [(3, 3), (0, 2), (0, 6), (7, 7)])
def test_parts_that_no_size_has_are_left_out(low: int, high: int, rng: np.random.Generator) -> None:
    """One more element than a dimension says: all lanes are full, or none, or it depends."""
    n = Dim("n", low, high)
    a = placeholder((dim_extent(n) + 1,), name="A")
    r = reduce_axis(dim_extent(n) + 1, name="k")
    tensors = [a, compute((1,), lambda i: ap.sum(a[r], r), name="B")]
    state, _ = State.initial(tensors).split_lanes("B", "k", 4)
    program = lower(state).run
    for size in range(low, high + 1):
        x = rng.standard_normal(size + 1).astype(np.float32)
        made = np.zeros(1, np.float32)
        run_program(program_at(program, {n: size}), [x, made])
        np.testing.assert_allclose(made, [x.sum()], rtol=1e-5, atol=1e-6)
