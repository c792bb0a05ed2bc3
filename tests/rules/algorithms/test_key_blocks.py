"""Attention in blocks of keys: where it is offered, and that it computes the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, sampled_from

from ansorpy.ir import builders as ap
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.rewrite.sizes import dag_at, program_at
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from ansorpy.measure.proofs.handlers import proof_of
from ansorpy.rules.algorithms.base import DIRECT
from ansorpy.rules.algorithms.key_blocks import KeyBlocks, key_blocks
from ansorpy.rules.algorithms.softmax import find_weighted_sums
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.rules.presets import CPU as DEFAULT
from ansorpy.schedule.lowering.program import Lowered, lower
from ansorpy.schedule.state import State
from ansorpy.target import Target
from tests.budget import examples
from tests.properties.random_elements import random_values
from tests.properties.test_schedules import interpreted
from tests.rounding import Reference
from tests.rules.algorithms.weighted_sums import attends, grouped_heads_attend, softmax_then_product
from tests.rules.asking import CPU, CUDA
from tests.rules.attentions import heads_attend
from tests.run_native import run_native

SMALL = replace(CPU, l2_bytes=4096)
"""A CPU whose cache holds a few keys."""
LENGTHS = [1, 2, 7, 16, 17, 31, 32, 33, 61]
"""Numbers of keys; blocks have 16."""


def in_blocks(tensors: list[Tensor], length: int = 16) -> tuple[ComputeDAG, ComputeDAG, float]:
    """The definition, the same in blocks of *length* keys, and its stated error."""
    dag = ComputeDAG.of(tensors)
    [weighted] = find_weighted_sums(dag)
    made = key_blocks(dag, weighted, length)
    assert [op.name for op in made.dag.outputs] == [op.name for op in dag.outputs]
    assert made.dag.args == dag.args
    return dag, made.dag, made.error


def causal(i: Expr, j: Expr, s: Expr) -> Expr:
    return ap.select(i >= j, s, float("-inf"))


@pytest.mark.parametrize(
    ("keys", "target", "found"),
    [
        (1024, "x86-64-v4", ["key_blocks(512)"]),
        (1023, "x86-64-v4", []),  # its scores, keys and values fit
        (1500, "x86-64-v4", ["key_blocks(500)"]),  # equal blocks
        (1537, "x86-64-v4", ["key_blocks(400)"]),  # whole vectors
        (4096, "x86-64-v4", ["key_blocks(512)"]),
        (512, "sm_90", []),
        (4096, "sm_90", ["key_blocks(512)"]),
    ],
)
def test_it_is_offered_where_rows_outgrow_the_cache(
    keys: int, target: str, found: list[str]
) -> None:
    dag = ComputeDAG.of(heads_attend(1, 128, keys, 2, 64))
    machine = replace(Target.parse(target), l2_bytes=1 << 20)
    assert [d.name for d in KeyBlocks().rewrite(dag, machine)] == found


def test_strict_precision_keeps_all_keys_together() -> None:
    dag = ComputeDAG.of(heads_attend(1, 8, 4096, 1, 8))
    names = [
        [d.name for d in SketchSampler(Task(dag, SMALL, 1, precision=p), DEFAULT).definitions]
        for p in ("strict", "default")
    ]
    assert names == [[DIRECT], [DIRECT, "key_blocks(64)"]]


@examples(60)
@given(
    keys=sampled_from(LENGTHS), rows=sampled_from([1, 5, 12]), width=sampled_from([1, 3, 8]),
    masks=booleans(), guarded=booleans(), heads=sampled_from([1, 3]), seed=integers(0, 2**31),
)  # fmt: skip
def test_blocks_of_any_number_of_keys_compute_attention(
    keys: int, rows: int, width: int, masks: bool, guarded: bool, heads: int,  # noqa: FBT001
    seed: int,
) -> None:  # fmt: skip
    shapes = ((1, heads, 1, keys), (2, 1, rows, keys)) if masks else ()
    tensors = heads_attend(2, rows, keys, heads, width, masks=shapes, guarded=guarded)
    dag, blocked, error = in_blocks(tensors)
    rng = np.random.default_rng(seed)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    [wide] = run_dag(blocked, data, dtype=DType.FLOAT64)
    np.testing.assert_allclose(wide, want, rtol=1e-10, atol=1e-12)
    [got], [plain] = run_dag(blocked, data), run_dag(dag, data)
    largest = float(np.abs(want).max())
    own = float(np.abs(plain - want).max()) / largest
    assert float(np.abs(got - want).max()) / largest <= own + error


@pytest.mark.parametrize(
    "tensors",
    [
        attends(12, 61, 3, scale=0.25, score=causal),
        attends(12, 32, 3, keys_first=True),
        softmax_then_product((2, 3, 33), 5),
        softmax_then_product((3, 32), 5, guarded=True),
        heads_attend(2, 4, 61, 3, 6, perm=(1, 3, 0, 2)),
        grouped_heads_attend(3, 33, 3),
    ],
    ids=["causal", "keys first", "softmax", "guarded", "turned", "grouped"],
)
def test_however_it_is_written(tensors: list[Tensor], rng: np.random.Generator) -> None:
    dag, blocked, _ = in_blocks(tensors)
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    for want, got in zip(
        run_dag(dag, data, dtype=DType.FLOAT64),
        run_dag(blocked, data, dtype=DType.FLOAT64),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_axes_may_have_any_names(rng: np.random.Generator) -> None:
    x, v = placeholder((3, 64), name="x"), placeholder((64, 5), name="v")
    j, k, m = (reduce_axis(64, name=name) for name in "jkm")
    top = compute((3,), lambda b: ap.max(x[b, j], axis=j), name="top")
    raised = compute((3, 64), lambda b, r0: ap.exp(x[b, r0] - top[b]), name="raised")
    total = compute((3,), lambda b: ap.sum(raised[b, k], axis=k), name="total")
    mixed = compute((3, 5), lambda b, b_: ap.sum(raised[b, m] * v[m, b_], axis=m), name="mixed")
    out = compute((3, 5), lambda b, block: mixed[b, block] / total[b], name="out")
    dag, blocked, _ = in_blocks([x, v, out])
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    [want], [got] = (run_dag(d, data, dtype=DType.FLOAT64) for d in (dag, blocked))
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("make", [attends, softmax_then_product])
def test_sixteen_bit_floats_are_summed_as_float32(
    make: object, dtype: str, rng: np.random.Generator
) -> None:
    made = attends(5, 61, 3, dtype=dtype) if make is attends else softmax_then_product(
        (5, 61), 3, dtype=dtype
    )  # fmt: skip
    dag, blocked, _ = in_blocks(made)
    sums = [op for op in blocked.computes if op.reduce_axes and "top" not in op.name]
    assert {op.dtype for op in sums if "max" not in op.name} == {DType.FLOAT32}
    numpy = DType(dtype).numpy
    data = {a.name: rng.standard_normal(a.shape).astype(numpy) for a in dag.args}
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    [got] = run_dag(blocked, data)
    assert got.dtype == numpy
    np.testing.assert_allclose(got.astype(float), want.astype(float), atol=4 * DType(dtype).epsilon)


@pytest.mark.parametrize("guarded", [False, True])
def test_rows_without_finite_scores(guarded: bool, rng: np.random.Generator) -> None:
    """Whole blocks of -inf count for nothing; whole rows give NaN, or 0 if guarded."""
    dag, blocked, _ = in_blocks(
        heads_attend(1, 4, 61, 1, 3, masks=((1, 1, 4, 61),), guarded=guarded)
    )
    data = {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in dag.args}
    data["mask0"][..., 0, :] = -np.inf
    data["mask0"][..., 1, :40] = -np.inf
    data["mask0"][..., 2, 16:32] = -np.inf
    data["mask0"][..., 3, 7] = np.nan
    for dtype in (None, DType.FLOAT64):
        [want], [got] = run_dag(dag, data, dtype=dtype), run_dag(blocked, data, dtype=dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        assert np.isnan(got[0, 0]).all() != guarded and not np.isnan(got[0, 1:3]).any()


def test_sketches_compute_attention(rng: np.random.Generator) -> None:
    dag = ComputeDAG.of(heads_attend(1, 9, 131, 2, 5, masks=((1, 1, 9, 131),)))
    preset = replace(DEFAULT, algorithms=(KeyBlocks(rows=4, least=16),))
    sampler = SketchSampler(Task(dag, SMALL, 2), preset)
    drawn = [s for s in sampler.draw(16, rng) if s.definition != DIRECT]
    data = random_values(dag, rng)
    [want] = run_dag(dag, data, dtype=DType.FLOAT64)
    for sketch in drawn[:2]:
        table = sketch.sample(32, rng)
        state = sketch.resolve(table[sketch.valid(table)][0])
        state.check()
        lowered = lower(state)
        [got], [native] = interpreted(lowered, data), run_native(lowered, data)
        for found in (got, native):
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("self_attention", [False, True])
def test_one_program_serves_every_number_of_keys(
    self_attention: bool,
    rng: np.random.Generator,  # noqa: FBT001
) -> None:
    """A schedule that was found at one length is proved and right at all others."""
    n = dim("n", 0 if self_attention else 1, 200)
    rows = n if self_attention else 9
    dag, blocked, _ = in_blocks(heads_attend(1, rows, n, 2, 5, masks=((1, 1, 1, n),)))
    [size] = dag.dims
    plain = replace(DEFAULT, algorithms=())
    sketch = SketchSampler(Task(dag_at(blocked, {size: 69}), CPU, 2), plain).draw_one(rng)
    table = sketch.sample(32, rng)
    found = sketch.resolve(table[sketch.valid(table)][0])
    lowered = lower(State.replay(blocked, found.history))
    proof = proof_of(lowered)
    assert not proof.refuted and proof.is_decided
    for length in (0, 1, 16, 17, 200)[not self_attention :]:
        here = dag_at(dag, {size: length})
        reference = Reference(here, random_values(here, rng))
        if reference.reason:
            continue
        data = dict(reference.data)
        at = Lowered(program_at(lowered.run, {size: length}), lowered.bind)
        if length < 20:
            assert max(reference.shares(interpreted(at, data), here)) <= 1, length
        native = run_native(lowered, data, sizes={size: length})
        assert max(reference.shares(native, here)) <= 1, length


def test_every_number_of_keys_of_a_dimension_is_offered_the_same_blocks() -> None:
    def offered(keys: Extent) -> list[str]:
        dag = ComputeDAG.of(attends(64, keys, 8))
        return [d.name for d in KeyBlocks().rewrite(dag, SMALL)]

    assert offered(dim("n", 1, 4096)) == offered(4096) == ["key_blocks(64)"]
    assert offered(dim("n", 1, 100)) == []


@pytest.mark.parametrize("keys", [64, 67])
def test_operands_of_gpu_tiles_are_read_by_their_place_in_the_block(keys: int) -> None:
    """Tiles of keys would be whole operands if blocks did not start at their multiples."""
    dag = ComputeDAG.of(heads_attend(1, 5, keys, 1, 3))
    [made] = KeyBlocks(gpu_rows=1 << 15, least=16).rewrite(dag, CUDA)
    assert {op.name for op in made.dag.computes} >= {"k.part", "v.part"}
    dag = ComputeDAG.of(attends(5, keys, 3))
    [made] = KeyBlocks(gpu_rows=1 << 15, least=16).rewrite(dag, CUDA)
    assert ("v.part" in {op.name for op in made.dag.computes}) is (keys == 67)
