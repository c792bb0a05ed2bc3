"""Softmax weights that are divided after the product: where it is offered, and what it computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, sampled_from

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.task import Precision, Task
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.algorithms.late_division import LateDivision, late_division
from ansorpy.rules.algorithms.softmax import find_weighted_sums
from ansorpy.rules.placed_sketch import SketchSampler
from ansorpy.schedule.stage import KernelStyle
from ansorpy.target import Target
from tests.budget import examples
from tests.rules.algorithms.weighted_sums import softmax_then_product
from tests.rules.asking import CPU, CUDA
from tests.rules.attentions import attend, heads_attend
from tests.tensor_cores import values

OFFERED = {
    "weights that are divided first": (attend(1, 20, 24, 8, 8, late=False), CUDA, 1),
    "exponentials in float32": (attend(1, 20, 24, 8, 8, late=False, narrow=False), CUDA, 1),
    "a product that is divided": (attend(1, 20, 24, 8, 8), CUDA, 0),
    "attention of networks": (heads_attend(1, 20, 24, 2, 8, dtype="float16"), CUDA, 0),
    "weights of 32 bits": (softmax_then_product((3, 20, 24), 8), CUDA, 0),
    "no tensor cores": (attend(1, 20, 24, 8, 8, late=False), Target.parse("sm_75"), 0),
    "a CPU": (attend(1, 20, 24, 8, 8, late=False), CPU, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", OFFERED)
def test_where_it_is_offered(name: str) -> None:
    tensors, target, count = OFFERED[name]
    assert len(list(LateDivision().rewrite(ComputeDAG.of(tensors), target))) == count


def assert_alike(tensors: list[Tensor], seed: int) -> None:
    """Assert that the late division computes *tensors*, NaN where they are NaN."""
    dag, rng = ComputeDAG.of(tensors), np.random.default_rng(seed)
    (weighted,) = find_weighted_sums(dag)
    made = late_division(dag, weighted)
    assert made.name == "late_division" and made.dag.args == dag.args
    assert [op.name for op in made.dag.outputs] == [op.name for op in dag.outputs]
    data = values(tensors, rng)
    (want,), (got,) = (run_dag(d, dict(data), dtype=DType.FLOAT64) for d in (dag, made.dag))
    limit = 2 * made.error * float(np.nanmax(np.abs(want), initial=1.0))
    np.testing.assert_allclose(got, want, rtol=0, atol=limit)


@examples(12)
@given(
    rows=integers(1, 20), keys=integers(1, 33), wide=integers(1, 9), narrow=booleans(),
    dtype=sampled_from(["float16", "bfloat16"]), seed=integers(0, 2**31),
)  # fmt: skip
def test_it_computes_the_same(
    rows: int, keys: int, wide: int, narrow: bool, dtype: str, seed: int
) -> None:
    tensors = attend(2, rows, keys, 5, wide, late=False, narrow=narrow, dtype=dtype)
    assert_alike(tensors, seed)


@pytest.mark.parametrize("guarded", [False, True])
def test_softmax_of_a_network_before_a_product(guarded: bool) -> None:
    tensors = softmax_then_product((3, 7, 13), 5, dtype="float16", guarded=guarded)
    assert_alike(tensors, seed=1)


def test_it_holds_for_all_sizes() -> None:
    keys = dim("n", 2, 40)
    whole = ComputeDAG.of(softmax_then_product((3, 7, keys), 5, dtype="float16"))
    (made,) = LateDivision().rewrite_for_all(whole, CUDA)
    (size,) = whole.dims
    for n in (2, 17):
        at = dag_at(whole, {size: n})
        data = values([*at.args, *at.outputs], np.random.default_rng(0))
        (want,) = run_dag(at, dict(data), dtype=DType.FLOAT64)
        (got,) = run_dag(dag_at(made.dag, {size: n}), dict(data), dtype=DType.FLOAT64)
        np.testing.assert_allclose(got, want, rtol=0, atol=5e-3)


def test_warps_then_carry_its_maxima() -> None:
    tensors = attend(1, 32, 48, 16, 16, late=False)
    precisions: tuple[Precision, ...] = ("default", "strict")
    for precision in precisions:
        sampler = SketchSampler(Task(ComputeDAG.of(tensors), CUDA, 1, precision))
        styles = {s.stages[-1].kernel_style for s in sampler.sketches}
        assert (KernelStyle.ROWS_IN_WARPS in styles) is (precision == "default")
