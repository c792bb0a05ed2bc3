from __future__ import annotations

import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.analysis.flops import flops
from ansorpy.ir.attrs import Attrs
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Function
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis
from tests.ir.workloads import conv, integers, matmul, softmax

X = placeholder((6, 4), name="x")
N = placeholder((6, 4), "int64", name="n")


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (compute((6, 4), lambda i, j: X[i, j] + X[i, j] * 2.0, name="y"), 48),
        (compute((6, 4), lambda i, j: b.exp(X[i, j] + 1.0), name="y"), 24),
        (compute((6, 2), lambda i, j: X[i, j * 2 + 1], name="y"), 0),
        (compute((6, 4), lambda i, j: b.select(i < 3, X[i, j] + 1.0, X[i, j]), name="y"), 24),
        (compute((6, 4), lambda i, j: b.select(X[i, j] < 0.0, 0.0, X[i, j]), name="y"), 24),
        (compute((6, 4), lambda i, j: -X[i, j], name="y"), 24),
        (compute((6, 4), lambda i, j: Call(Function.FMA, (X[i, j],) * 3), name="y"), 48),
        (compute((6, 4), lambda i, j: N[i, j] * 3 + i, name="y"), 48),
        (compute((6, 4), lambda i, j: N[i, j].astype(DType.FLOAT32) * 3.0, name="y"), 24),
        (compute((6, 4), lambda i, j: X[i, j] + 1.0, name="y", attrs=Attrs(flops=7)), 7),
    ],
)
def test_counts_of_single_ops(op: ComputeOp, expected: float) -> None:
    assert flops(op) == expected


def test_reductions_count_the_combination() -> None:
    k = reduce_axis(4, name="k")
    assert flops(compute((6,), lambda i: b.max(X[i, k], k), name="y")) == 24
    assert flops(matmul(5, 3, 7)) == 2 * 5 * 3 * 7 + 5 * 3
    assert flops(conv(7, 3, 4, 2)) == 2 * 4 * 4 * 4 * 27 + 4 * 4 * 4
    assert flops(softmax(3, 6)) == 18 + 18 + 18 + 18
    assert flops(integers(5)) > 0
    assert flops(X) == 0
