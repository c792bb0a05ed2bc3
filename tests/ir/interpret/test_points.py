from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.errors import UsageError
from ansorpy.ir.builders import max as max_over
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import evaluate_points, run_dag
from ansorpy.ir.rewrite.sizes import dag_at
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from tests.ir.oracle import random_inputs
from tests.ir.workloads import ALL, conv, matmul, scalar


@given(st.sampled_from(ALL), st.integers(0, 1000))
def test_points_are_the_elements_of_the_whole(make: Callable[[], ComputeDAG], seed: int) -> None:
    dag = make()
    v = random_inputs(dag, seed)
    rng = np.random.default_rng(seed)
    for op, whole in zip(dag.outputs, run_dag(dag, v, DType.FLOAT64), strict=True):
        points = rng.integers(0, np.maximum(op.shape, 1), (9, op.ndim))
        found = evaluate_points(dag, v, op, points)
        assert found.dtype == (np.float64 if op.dtype.is_float else op.dtype.numpy)
        np.testing.assert_allclose(found, whole[tuple(points.T)], rtol=1e-12, atol=1e-14)


def test_a_scalar_has_one_point() -> None:
    dag = scalar()
    v = random_inputs(dag)
    found = evaluate_points(dag, v, dag.outputs[0], np.zeros((2, 0)))
    np.testing.assert_allclose(found, np.prod(v["x"], dtype=np.float64))


def test_inner_stages_can_be_asked_for() -> None:
    dag = conv()
    padded = next(op for op in dag.ops if op.name == "padded")
    v = random_inputs(dag)
    assert evaluate_points(dag, v, padded, [[0, 0, 0], [1, 1, 2]]).tolist() == [0, v["x"][0, 0, 2]]


def test_a_large_definition_costs_what_its_points_need() -> None:
    dag = matmul(1 << 12, 1 << 13, 16)
    v = random_inputs(dag)
    points = np.array([[0, 0], [5, 7], [4095, 8191]])
    want = np.maximum((v["x"][points[:, 0]] * v["w"].T[points[:, 1]]).sum(1, dtype=float), 0)
    np.testing.assert_allclose(evaluate_points(dag, v, dag.outputs[0], points), want, rtol=1e-5)


def test_wrong_points_are_refused() -> None:
    dag = matmul()
    v = random_inputs(dag)
    with pytest.raises(UsageError, match=r'points of "z" need shape \(n, 2\)'):
        evaluate_points(dag, v, dag.outputs[0], [[1, 2, 3]])
    with pytest.raises(UsageError, match="is read at 5 in dimension 0"):
        evaluate_points(dag, v, dag.outputs[0], [[5, 0]])
    with pytest.raises(UsageError, match='"p" is not part of the definition'):
        evaluate_points(dag, v, scalar().outputs[0], np.zeros((1, 0)))


@pytest.mark.parametrize(("reduction", "identity"), [(sum_over, 0.0), (max_over, -np.inf)])
def test_a_reduction_over_nothing_is_its_identity(
    reduction: Callable[..., Expr], identity: float
) -> None:
    n = dim("n", 0, 8)
    x, k = placeholder((4, n), name="x"), reduce_axis(n, name="k")
    y = compute((4,), lambda i: reduction(x[i, k] - x[i, 0], axis=k), name="y")
    dag = ComputeDAG([y])
    dag = dag_at(dag, dict.fromkeys(dag.dims, 0))
    empty = {"x": np.zeros((4, 0), np.float32)}
    assert evaluate_points(dag, empty, dag.outputs[0], [[0], [3]]).tolist() == [identity] * 2
    assert run_dag(dag, empty)[0].tolist() == [identity] * 4
