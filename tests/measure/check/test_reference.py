"""The reference's schedule computes what the definition says, in vectors and on all cores."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir.builders import exp
from ansorpy.ir.builders import max as max_over
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.check.reference import reference_state
from ansorpy.schedule.lowering.program import lower
from tests.measure.definitions import matmul
from tests.run_native import run_native
from tests.workloads import conv2d_bn_relu


def _softmax(rows: int, columns: int) -> ComputeDAG:
    x = placeholder((rows, columns), name="x")
    a, b = reduce_axis(columns, name="a"), reduce_axis(columns, name="b")
    top = compute((rows,), lambda i: max_over(x[i, a], axis=a), name="top")
    e = compute((rows, columns), lambda i, j: exp(x[i, j] - top[i]), name="e")
    total = compute((rows,), lambda i: sum_over(e[i, b], axis=b), name="total")
    return ComputeDAG.of(
        [x, compute((rows, columns), lambda i, j: e[i, j] / total[i], name="y")]
    )  # fmt: skip


def _sum_of_all(n: int) -> ComputeDAG:
    x = placeholder((n,), name="x")
    k = reduce_axis(n, name="k")
    return ComputeDAG.of([x, compute((), lambda: sum_over(x[k], axis=k), name="y")])


DAGS = {
    "matmul": matmul(24, 40, 17),
    "one row": matmul(1, 96, 33),
    "prime": matmul(7, 67, 5),
    "ones": matmul(1, 1, 1),
    "conv": ComputeDAG.of(conv2d_bn_relu(1, 5, 7, 3, 4)),
    "softmax": _softmax(6, 35),
    "scalar": _sum_of_all(70_000),
}


@pytest.mark.parametrize("name", DAGS)
def test_it_computes_the_definition(name: str, rng: np.random.Generator) -> None:
    dag = DAGS[name]
    data = {op.name: rng.standard_normal(op.shape, dtype=np.float32) for op in dag.args}
    found = run_native(lower(reference_state(dag)), data)
    for got, want in zip(found, run_dag(dag, data), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_sums_run_outside_of_vectors_that_divide_the_last_axis() -> None:
    assert str(reference_state(matmul(7, 96, 5)).text("C")).splitlines() == [
        "for i in 0..7  # parallel",
        "  for j.0 in 0..2",
        "    for k in 0..5  # reduce",
        "      for j.1 in 0..48  # vectorized",
        "        C[i, j] += ...",
    ]


def test_what_nothing_divides_stays_as_it_was() -> None:
    text = reference_state(matmul(1, 67, 5)).text("C")
    assert "vectorized" not in text and "j.0" not in text
