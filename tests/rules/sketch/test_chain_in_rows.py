"""ChainInRows: two products, and all stages between, in one GPU kernel with shared rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import integers, permutations, sampled_from

from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Alloc as Allocation
from ansorpy.ir.loops import Scope, walk_stmts
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.rules.matching.kernels import kernels
from ansorpy.rules.placed_sketch import PlacedSketch, SketchSampler
from ansorpy.rules.presets import ANSOR_CUDA, CUDA
from ansorpy.rules.sketch.chain_in_rows import ChainInRows
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests import workloads
from tests.budget import examples
from tests.faults import planted_races
from tests.properties.random_elements import random_values
from tests.rules.asking import APPLY, SKIP, ask, derive, shows
from tests.rules.asking import CUDA as GPU
from tests.rules.attentions import heads_attend
from tests.rules.test_gpu_programs import check

RULE = ChainInRows()


def one_kernel(tensors: Sequence[Tensor]) -> PlacedSketch:
    """The placed sketch in which all of *tensors* is one kernel."""
    sampler = SketchSampler(Task(ComputeDAG.of(tensors), GPU, 1), CUDA)
    numbers = [n for n, s in enumerate(sampler.sketches) if len(list(kernels(s))) == 1]
    return sampler.place(numbers[0], np.random.default_rng(0))


def rows_of(sketch: PlacedSketch, n: int, rng: np.random.Generator) -> list[State]:
    """One to *n* random programs of the placed sketch, mutated ones among them."""
    table = sketch.sample(128, rng)
    both = np.concatenate((sketch.mutate(table, rng), table))
    found = [sketch.resolve(row) for row in both[sketch.valid(both)][:n]]
    assert found
    return found


def test_attention_is_one_kernel() -> None:
    [(state, following)] = derive(RULE, workloads.attention(2, 6, 9, 16), "out", GPU)
    assert following == ""
    shows(
        state,
        """
        for h@i.0.0@ in 0..?  # blockIdx.x
          for i0 in 0..2
            for i1.0.0 in 0..?
              for i2.0.0.0 in 0..?
                for i2.0.0.1 in 0..?  # vthread
                  for i1.0.1 in 0..?  # threadIdx.y
                    for i2.0.1 in 0..?  # threadIdx.x
                      for d.0 in 0..?  # reduce
                        for i0 in 0..2
                          for i1 in 0..6
                            for i2 in 0..16
                              Q.shared[i0, i1, i2] = ...
                        for i0 in 0..2
                          for i1 in 0..9
                            for i2 in 0..16
                              K.shared[i0, i1, i2] = ...
                        for d.1 in 0..?  # reduce
                          for h in 0..2  # unrolled
                            for i in 0..6  # unrolled
                              for j in 0..9  # unrolled
                                S[h, i, j] += ...
                      for i1.1 in 0..?  # unrolled
                        for i2.1 in 0..?  # vectorized
                          scaled[i0, i1, i2] = ...
          for h in 0..2
            for i.0 in 0..?
              for i.1 in 0..?  # threadIdx.y
                for a.0.0 in 0..?  # reduce
                  for a.0.1 in 0..?  # threadIdx.x, reduce
                    for a.1 in 0..?  # unrolled, reduce
                      top[h, i] max= ...
          for h in 0..2
            for i.0 in 0..?
              for j.0.0 in 0..?
                for i.1 in 0..?  # threadIdx.y
                  for j.0.1 in 0..?  # threadIdx.x
                    for j.1 in 0..?  # vectorized
                      E[h, i, j] = ...
          for h in 0..2
            for i.0 in 0..?
              for i.1 in 0..?  # threadIdx.y
                for b.0.0 in 0..?  # reduce
                  for b.0.1 in 0..?  # threadIdx.x, reduce
                    for b.1 in 0..?  # unrolled, reduce
                      total[h, i] += ...
          for j.0.0 in 0..?
            for i.0.1 in 0..?  # threadIdx.y
              for j.0.1 in 0..?  # threadIdx.x
                for c.0 in 0..?  # reduce
                  for i0 in 0..2
                    for i1 in 0..9
                      for i2 in 0..16
                        V.shared[i0, i1, i2] = ...
                  for c.1 in 0..?  # reduce
                    for h in 0..2  # unrolled
                      for i in 0..6  # unrolled
                        for j in 0..16  # unrolled
                          P[h, i, j] += ...
                for i.1 in 0..?  # unrolled
                  for j.1 in 0..?  # vectorized
                    out[h, i, j] = ...
        """,
    )


def summed_first() -> list[Tensor]:
    """A product of a product with the row sums of a third matrix."""
    a, b, c = (placeholder((8, 8), name=name) for name in "abc")
    ka, kb, kc = (reduce_axis(8, name=f"k{n}") for n in "abc")
    first = compute((8, 8), lambda i, j: sum_over(a[i, ka] * b[ka, j], axis=ka), name="first")
    rows = compute((8,), lambda i: sum_over(c[i, kc], axis=kc), name="rows")
    last = compute((8, 8), lambda i, j: sum_over(first[i, kb] * rows[kb] * c[kb, j], axis=kb),
                   name="last")  # fmt: skip
    return [a, b, c, last]


@pytest.mark.parametrize(
    ("tensors", "stage", "reason"),
    [
        (workloads.attention(2, 6, 9, 16), "total", "not the last stage"),
        (workloads.matmul(8, 8, 8), "C", '"C.local" reads no computed stage'),
        (workloads.softmax(4, 8), "norm", "no stage re-reads its inputs"),
        (workloads.attention(1, 1, 9, 16), "out", "needs only a part of every producer"),
        (workloads.activated_matmul(9, 13, 10), "out", "there are not two products"),
        (summed_first(), "last", 'each block that reads "rows" would compute its sums again'),
    ],
    ids=["inner", "product", "softmax", "one row", "activation", "sums"],
)  # fmt: skip
def test_other_definitions_are_left_alone(tensors: list[Tensor], stage: str, reason: str) -> None:
    verdict = ask(RULE, tensors, stage, GPU)
    assert verdict.answer is SKIP
    assert reason in verdict.reason


def test_what_is_done_to_all_scores_is_done_before_they_are_kept() -> None:
    masked = heads_attend(2, 5, 7, 3, 6, masks=((1, 3, 5, 7),))
    assert ask(RULE, masked, "attention", GPU).answer is APPLY
    [(state, _)] = derive(RULE, masked, "attention", GPU)
    attach = state.stage("matmul").attach
    assert attach is not None and attach.stage == "masked"
    plain = heads_attend(2, 5, 7, 3, 6)
    [(state, _)] = derive(RULE, plain, "attention", GPU)
    attach = state.stage("matmul.local").attach
    assert attach is not None and attach.stage == "matmul"


def test_views_are_read_where_tiles_are_filled() -> None:
    [(state, _)] = derive(RULE, heads_attend(2, 5, 7, 3, 6), "attention", GPU)
    assert all(state.stage(name).inlined for name in "qkv")
    # Rows of the copy are those of the source, whose last dimension is the head's.
    assert state.stage("k.shared").op.shape == (2, 3, 7, 6)


def test_no_scores_reach_global_memory(rng: np.random.Generator) -> None:
    sketch = one_kernel(workloads.attention(2, 6, 9, 16))
    (state,) = rows_of(sketch, 1, rng)
    program = lower(state).run
    kept = [s.buffer for s in walk_stmts(program.body) if isinstance(s, Allocation)]
    assert {b.name for b in kept if b.scope is Scope.SHARED} >= {"scaled", "top", "total"}
    assert not [b for b in kept if b.scope is Scope.WORKSPACE]


@examples(12)
@given(
    seed=integers(0, 2**31), rows=sampled_from([7, 1, 2, 12, 33]), keys=integers(2, 37),
    dim=sampled_from([3, 2, 8, 13, 16]), heads=sampled_from([2, 1, 3]),
    masks=sampled_from([True, False]), perm=permutations([0, 2, 1]),
    guarded=sampled_from([True, False]),
)  # fmt: skip
def test_random_programs_of_random_shapes_compute_attention(
    seed: int, rows: int, keys: int, dim: int, heads: int, masks: bool,  # noqa: FBT001
    perm: list[int], guarded: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    shapes = ((1, heads, 1, keys), (2, 1, rows, keys)) if masks else ()
    tensors = heads_attend(
        2, rows, keys, heads, dim, masks=shapes, perm=(*perm, 3), guarded=guarded
    )
    assert ask(RULE, tensors, "attention", GPU).applies
    dag = ComputeDAG.of(tensors)
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    found = rows_of(one_kernel(tensors), 2, rng)
    assert found
    for state in found:
        check(state, data, expected)


def test_two_products_without_rows_in_between_are_one_kernel(rng: np.random.Generator) -> None:
    dag = ComputeDAG.of(workloads.double_matmul(11))
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    (state,) = rows_of(one_kernel(workloads.double_matmul(11)), 1, rng)
    check(state, data, expected)


def test_a_convolution_of_each_channel_and_one_of_all_are_one_kernel(
    rng: np.random.Generator,
) -> None:
    """The first convolution reads neighbouring rows: its tiles overlap, its results do not."""
    tensors = workloads.depthwise_pointwise(1, 6, 7, 5, 8)
    dag = ComputeDAG.of(tensors)
    data = random_values(dag, rng)
    expected = run_dag(dag, data, dtype=DType.FLOAT64)
    (state,) = rows_of(one_kernel(tensors), 1, rng)
    check(state, data, expected)


def test_missing_barriers_are_found(rng: np.random.Generator) -> None:
    (state,) = rows_of(one_kernel(workloads.attention(1, 6, 24, 8)), 1, rng)
    races = planted_races(lower(state).run, rng)
    assert races >= {"scaled", "top"}


def test_preset_ansor_does_not_have_it() -> None:
    assert not any(isinstance(rule, ChainInRows) for rule in ANSOR_CUDA.sketch)
