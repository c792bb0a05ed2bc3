"""Sums that the threads of a block share, of every number of threads, against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ScheduleError
from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag, run_program
from ansorpy.ir.loops import Barrier, Scope, Shuffle, walk_stmts
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.ir.text.printer import text
from ansorpy.ir.verify import verify
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State


def row_sums(rows: int = 3, columns: int = 96, dtype: DType = DType.FLOAT32) -> list[Tensor]:
    x = placeholder((rows, columns), dtype, name="x")
    k = reduce_axis(columns, name="k")
    return [x, compute((rows,), lambda i: b.sum(x[i, k] * x[i, k], axis=k), name="sum")]


def shared(tensors: list[Tensor], threads: int) -> State:
    """Rows on blocks, their sums on so many threads."""
    state = State.initial(ComputeDAG.of(tensors))
    state, (_, inner) = state.split("sum", "k", (threads,))
    return state.bind("sum", "i", "blockIdx.x").bind("sum", inner, "threadIdx.x")


def computes_the_definition(state: State, lowered: Lowered) -> None:
    rng = np.random.default_rng(1)
    data = {
        op.name: rng.standard_normal(op.shape).astype(op.dtype.numpy)
        for op in state.current_dag.args
    }
    expected = run_dag(state.current_dag, data, dtype=DType.FLOAT64)
    verify(lowered.run)
    outputs = [np.empty(op.shape, op.dtype.numpy) for op in state.current_dag.outputs]
    run_program(lowered.run, [*data.values(), *outputs])
    for got, want in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-2 if
                                   got.dtype.itemsize < 4 else 1e-5)  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 7, 12, 16, 31, 32, 48, 64, 96, 100, 128])
def test_any_number_of_threads_shares_a_sum(threads: int) -> None:
    state = shared(row_sums(), threads)
    computes_the_definition(state, lower(state))


def test_a_warp_exchanges_registers_and_waits_for_nobody() -> None:
    lowered = lower(shared(row_sums(), 32))
    found = [s for s in walk_stmts(lowered.run.body) if isinstance(s, Barrier | Shuffle)]
    assert [s.distance for s in found if isinstance(s, Shuffle)] == [16, 8, 4, 2, 1]
    assert len(found) == 5
    assert text(lowered.run) == SUM_OF_A_WARP


SUM_OF_A_WARP = """\
kernel(x: input float32[3, 96], sum: output float32[3])
  for i in 0..3  # blockIdx.x
    for k.1 in 0..32  # threadIdx.x
      alloc sum.part: float32[1] in local
      sum.part[0] = 0.0
      for k.0 in 0..3
        sum.part[0] += x[i, k.0 * 32 + k.1] * x[i, k.0 * 32 + k.1]
      alloc sum.part.other: float32[1] in local
      sum.part.other[0] = shuffle(sum.part[0], 16)
      sum.part[0] += sum.part.other[0]
      sum.part.other[0] = shuffle(sum.part[0], 8)
      sum.part[0] += sum.part.other[0]
      sum.part.other[0] = shuffle(sum.part[0], 4)
      sum.part[0] += sum.part.other[0]
      sum.part.other[0] = shuffle(sum.part[0], 2)
      sum.part[0] += sum.part.other[0]
      sum.part.other[0] = shuffle(sum.part[0], 1)
      sum.part[0] += sum.part.other[0]
      if k.1 == 0
        sum[i] = sum.part[0]"""


def test_several_warps_meet_in_shared_memory() -> None:
    lowered = lower(shared(row_sums(), 96))
    scopes = [s.scope for s in walk_stmts(lowered.run.body) if isinstance(s, Barrier)]
    assert scopes == [Scope.SHARED] * 2
    assert "alloc sum.warps: float32[1, 3] in shared" in text(lowered.run)
    assert "if k.1 % 32 == 0\n        sum.warps[0, k.1 // 32] = sum.part[0]" in text(lowered.run)


def test_halves_are_summed_in_single_precision() -> None:
    state = shared(row_sums(dtype=DType.FLOAT16), 16)
    lowered = lower(state)
    assert "alloc sum.part: float32[1]" in text(lowered.run)
    computes_the_definition(state, lowered)


def test_rows_on_other_threads_have_sums_of_their_own() -> None:
    state = shared(row_sums(4, 90), 45).bind("sum", "i", "threadIdx.y")
    lowered = lower(state)
    assert "alloc sum.warps: float32[4, 1, 45] in shared" in text(lowered.run)
    computes_the_definition(state, lowered)


@pytest.mark.parametrize("index", ["threadIdx.y", "threadIdx.z"])
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_threads_that_are_no_neighbours_meet_in_shared_memory(threads: int, index: str) -> None:
    """Rows are neighbours: what each thread found of them lies in different banks."""
    state = State.initial(ComputeDAG.of(row_sums(9, 40)))
    state, (block, row) = state.split("sum", "i", (4,))
    state = state.bind("sum", block, "blockIdx.x").bind("sum", row, "threadIdx.x")
    state, (_, inner) = state.split("sum", "k", (threads,))
    lowered = lower(state.bind("sum", inner, index))
    assert not [s for s in walk_stmts(lowered.run.body) if isinstance(s, Shuffle)]
    scratch = f"alloc sum.warps: float32[{threads}, 1, 4] in shared"
    assert (scratch in text(lowered.run)) is (threads > 1)
    computes_the_definition(state, lowered)


def test_elements_inside_the_sum_are_summed_together() -> None:
    x = placeholder((2, 5, 40), name="x")
    k = reduce_axis(40, name="k")
    total = compute((2, 5), lambda i, j: b.max(x[i, j, k], axis=k), name="sum")
    state = State.initial(ComputeDAG.of([x, total]))
    state, (outer, inner) = state.split("sum", "k", (20,))
    state = state.reorder("sum", ["i", outer, inner, "j"])
    state = state.bind("sum", "i", "blockIdx.x").bind("sum", inner, "threadIdx.x")
    assert "alloc sum.part: float32[5] in local" in text(lower(state).run)
    computes_the_definition(state, lower(state))


def test_a_consumer_of_the_same_block_reads_what_the_first_thread_wrote() -> None:
    x, total = row_sums(3, 64)
    out = compute((3, 64), lambda i, j: x[i, j] / total[i], name="out")
    state = State.initial(ComputeDAG.of([x, out]))
    state, (_, inner) = state.split("sum", "k", (16,))
    state, (_, column) = state.split("out", "j", (16,))
    state = state.bind("sum", inner, "threadIdx.x").bind("out", column, "threadIdx.x")
    state = state.bind("out", "i", "blockIdx.x").compute_at("sum", "out", "i")
    lowered = lower(state)
    assert "alloc sum: float32[1] in shared" in text(lowered.run)
    computes_the_definition(state, lowered)


def test_ragged_sums_are_guarded_and_waits_are_not() -> None:
    state = shared(row_sums(3, 77), 24)
    computes_the_definition(state, lower(state))


def test_threads_that_are_in_use_are_refused() -> None:
    state = shared(row_sums(), 32)
    state = state.bind("sum", "i", "threadIdx.x")
    with pytest.raises(ScheduleError, match="threads share a sum along one index"):
        lower(state)
    tensors = row_sums(3, 64)
    state = State.initial(ComputeDAG.of(tensors))
    state, (outer, inner) = state.split("sum", "k", (16,))
    state = state.bind("sum", outer, "threadIdx.x").bind("sum", inner, "threadIdx.x")
    with pytest.raises(ScheduleError, match="threads share a sum along one index"):
        lower(state)
