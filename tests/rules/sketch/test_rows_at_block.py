"""RowsAtBlock: softmax, norms and row sums in one kernel, with several rows per block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from

from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Alloc, For, ForKind, walk_stmts
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.sketch.rows_at_block import RowsAtBlock
from ansorpy.schedule.lowering.program import lower
from tests import workloads
from tests.budget import examples
from tests.faults import planted_races
from tests.properties.random_elements import random_values
from tests.rules.asking import APPLY, SKIP, ask, derive, shows
from tests.rules.asking import CUDA as GPU
from tests.rules.gpu_workloads import average_pool, channel_means, vector_matmul
from tests.rules.sketch.test_chain_in_rows import one_kernel, rows_of
from tests.rules.test_gpu_programs import check

RULE = RowsAtBlock()
MADE: dict[str, Callable[[int, int], list[Tensor]]] = {
    "softmax": workloads.softmax,
    "layer norm": workloads.layer_norm,
    "row sum": workloads.min_reduce,
    "row norm": lambda rows, columns: workloads.matrix_norm(rows, 3, columns),
    "vector": lambda rows, columns: vector_matmul(1, rows, 256 + columns, transposed=False),
    "vector of rows": lambda rows, columns: vector_matmul(2, rows, 256 + columns, transposed=True),
    "channels": lambda rows, columns: channel_means(2, 3, columns, rows),
}


def test_a_softmax_of_short_rows() -> None:
    [(state, _)] = derive(RULE, workloads.softmax(40, 64), "norm", GPU)
    shows(
        state,
        """
        for i0.0 in 0..?  # blockIdx.x
          for i0.0 in 0..?
            for i0.1 in 0..?  # threadIdx.y
              for k1.0.0 in 0..?  # reduce
                for k1.0.1 in 0..?  # threadIdx.x, reduce
                  for k1.1 in 0..?  # unrolled, reduce
                    max[i0] max= ...
          for i0.0 in 0..?
            for i1.0.0 in 0..?
              for i0.1 in 0..?  # threadIdx.y
                for i1.0.1 in 0..?  # threadIdx.x
                  for i1.1 in 0..?  # vectorized
                    exp[i0, i1] = ...
          for i0.0 in 0..?
            for i0.1 in 0..?  # threadIdx.y
              for k2.0.0 in 0..?  # reduce
                for k2.0.1 in 0..?  # threadIdx.x, reduce
                  for k2.1 in 0..?  # unrolled, reduce
                    sum[i0] += ...
          for i1.0.0 in 0..?
            for i0.1 in 0..?  # threadIdx.y
              for i1.0.1 in 0..?  # threadIdx.x
                for i1.1 in 0..?  # vectorized
                  norm[i0, i1] = ...
        """,
    )


def columns_summed() -> list[Tensor]:
    """A softmax along columns, whose summed elements are not contiguous."""
    x, k = placeholder((9, 13), name="x"), reduce_axis(9, name="k")
    total = compute((13,), lambda j: sum_over(x[k, j], axis=k), name="total")
    return [x, compute((13, 9), lambda j, i: x[i, j] / total[j], name="out")]


@pytest.mark.parametrize(
    ("tensors", "stage", "reason"),
    [
        (workloads.matmul(8, 8, 8), "C", '"C" re-reads its inputs'),
        (workloads.softmax(4, 8), "max", "not the only output"),
        (average_pool(1, 9, 9, 5, 3, 2), "mean", "re-reads its inputs"),
        (vector_matmul(300, 37, 300, transposed=True), "out", '"C" re-reads its inputs'),
        (vector_matmul(1, 37, 30, transposed=True), "out", '"C" re-reads its inputs'),
        (workloads.matrix_norm(1, 5, 7), "norm", "needs only a part of every producer"),
        (columns_summed(), "out", 'the elements that "total" sums are not contiguous'),
        (workloads.softmax(1, 8), "norm", "needs only a part of every producer"),
    ],
    ids=[
        "product",
        "inner",
        "windows",
        "many results",
        "short sums",
        "one result",
        "columns",
        "one row",
    ],
)
def test_other_definitions_are_left_alone(tensors: list[Tensor], stage: str, reason: str) -> None:
    verdict = ask(RULE, tensors, stage, GPU)
    assert verdict.answer is SKIP
    assert reason in verdict.reason


@examples(30)
@given(seed=integers(0, 2**31), name=sampled_from(sorted(MADE)), rows=integers(2, 40),
       columns=sampled_from([7, 2, 31, 33, 45, 64, 101]))  # fmt: skip
def test_random_programs_of_random_shapes_compute_them(
    seed: int, name: str, rows: int, columns: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = MADE[name](rows, columns)
    dag = ComputeDAG.of(tensors)
    assert ask(RULE, tensors, dag.outputs[0].name, GPU).answer is APPLY
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    for state in rows_of(one_kernel(tensors), 2, rng):
        check(state, data, expected)


def test_groups_of_threads_have_parts_of_a_long_sum() -> None:
    """Neighbouring results are neighbours in the matrix: they go to lanes; rows share the sum."""
    [(state, _)] = derive(RULE, vector_matmul(1, 37, 300, transposed=False), "out", GPU)
    shows(
        state,
        """
        for j.0.0 in 0..?  # blockIdx.x
          for i in 0..1
            for j.0.0 in 0..?
              for j.0.1 in 0..?  # threadIdx.x
                for k.0.0 in 0..?  # reduce
                  for k.0.1 in 0..?  # threadIdx.y, reduce
                    for j.1 in 0..?  # unrolled
                      for k.1 in 0..?  # unrolled, reduce
                        C[i, j] += ...
          for i in 0..1
            for j.1.0 in 0..?
              for j.0.1 in 0..?  # threadIdx.x
                for j.1.1 in 0..?  # threadIdx.y
                  out[i, j] = ...
        """,
    )


def test_groups_that_share_a_sum_use_different_banks() -> None:
    sketch = one_kernel(vector_matmul(1, 64, 300, transposed=False))
    columns = {name: 1 for name in sketch.columns}
    columns |= {"out.j/1": 2, "out.j.0/1": 32, "out.j.1/1": 4}
    program = lower(sketch.resolve([columns[name] for name in sketch.columns])).run
    (scratch,) = [s.buffer for s in walk_stmts(program.body)
                  if isinstance(s, Alloc) and s.buffer.name == "C.warps"]  # fmt: skip
    assert scratch.shape == (4, 2, 32)  # groups, results of a thread, neighbours


def test_a_block_has_several_rows_of_a_warp_each(rng: np.random.Generator) -> None:
    sketch = one_kernel(workloads.softmax(40, 64))
    columns = {name: 1 for name in sketch.columns} | {"norm.i0/1": 8, "norm.i1.0/1": 32}
    program = lower(sketch.resolve([columns[name] for name in sketch.columns])).run
    threads = {s.kind: s.extent for s in walk_stmts(program.body) if isinstance(s, For)}
    assert threads[ForKind.THREAD_Y] == 8 and threads[ForKind.THREAD_X] == 32
    blocks = [s for s in walk_stmts(program.body)
              if isinstance(s, For) and s.kind is ForKind.BLOCK_X]  # fmt: skip
    assert [s.extent for s in blocks] == [5]


def test_missing_barriers_are_found(rng: np.random.Generator) -> None:
    sketch = one_kernel(workloads.softmax(6, 45))
    columns = {name: 1 for name in sketch.columns} | {"norm.i0/1": 2, "norm.i1.0/1": 64}
    program = lower(sketch.resolve([columns[name] for name in sketch.columns])).run
    assert planted_races(program, rng) >= {"max", "sum", "max.warps", "sum.warps"}
