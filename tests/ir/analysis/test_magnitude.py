"""Magnitudes say how large rounding errors are, whatever is left of the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.ir.analysis.magnitude import magnitude_of
from ansorpy.ir.builders import (
    cos,
    erf,
    exp,
    log,
    maximum,
    minimum,
    rsqrt,
    select,
    sin,
    sqrt,
    sum,
    tanh,
)
from ansorpy.ir.builders import max as max_over
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis

N = 257
UNIT = 2.0**-23

EXPRESSIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "cancelled": lambda x, y: (x * y + 3.0) - y * x - 3.0,
    "quotient": lambda x, y: (x + 100.0) / (y + 5.0) - x / (y + 5.0),
    "exp": lambda x, y: exp(x + 10.0 - y) - exp(x - y) * exp(y * 0.0 + 10.0),
    "log": lambda x, y: log(x * x + y * y + 1.0) - log(y * y + (x * x + 1.0)),
    "roots": lambda x, y: sqrt(x * x + 1.0) * rsqrt(1.0 + x * x) - 1.0,
    "tanh": lambda x, y: tanh(x + 1.0) - tanh(x + y + (1.0 - y)),
    "erf": lambda x, y: erf((x + y) * 0.7) - erf(x * 0.7 + y * 0.7),
    "angles": lambda x, y: sin(x + y) * cos(x) - cos(x + y) * sin(x) - sin(y),
    "chosen": lambda x, y: select(x < y, maximum(x, y) - x, y - minimum(x, y)) + 1.0 - 1.0,
}


def of(body: Callable[[Expr, Expr], Expr]) -> ComputeOp:
    x, y = placeholder((N,), name="x"), placeholder((N,), name="y")
    return compute((N,), lambda i: body(x[i], y[i]), name="z")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_errors_are_some_units_of_the_magnitude(name: str, rng: np.random.Generator) -> None:
    op = of(EXPRESSIONS[name])
    given = {key: rng.standard_normal(N).astype(np.float32) for key in "xy"}
    [rounded] = run_dag(ComputeDAG([op]), given)
    [exact] = run_dag(ComputeDAG([op]), given, DType.FLOAT64)
    [magnitude] = run_dag(magnitude_of(op)[0], given, DType.FLOAT64)
    errors = np.abs(rounded - exact) / (UNIT * magnitude)
    assert errors.max() < 4.0
    assert errors.max() > 0.02, "it says nothing"
    assert (magnitude >= np.abs(exact) * (1 - 1e-9)).all()


def test_sums_products_and_extremes_of_what_other_stages_make() -> None:
    a, b = placeholder((3, 5), name="A"), placeholder((5, 4), name="B")
    k, m = reduce_axis(5, name="k"), reduce_axis(4, name="m")
    c = compute((3, 4), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="C")
    top = compute((3,), lambda i: max_over(c[i, m], axis=m), name="T")
    d = compute((3, 4), lambda i, j: c[i, j] - top[i], name="D")
    rng = np.random.default_rng(1)
    given = {"A": rng.standard_normal((3, 5)).astype(np.float32),
             "B": rng.standard_normal((5, 4)).astype(np.float32)}  # fmt: skip
    dag, magnitude = magnitude_of(d)
    assert magnitude.name == "D.magnitude" and dag.outputs == (magnitude,)
    terms = np.abs(given["A"]) @ np.abs(given["B"])
    [found] = run_dag(dag, given)
    np.testing.assert_allclose(found, terms + terms.max(axis=1, keepdims=True), rtol=1e-5)


def test_integers_are_exact() -> None:
    n = placeholder((4,), DType.INT32, name="n")
    doubled = compute((4,), lambda i: n[i] * 2, name="two")
    x = compute((4,), lambda i: doubled[i].astype(DType.FLOAT32) - 6.0, name="x")
    [found] = run_dag(magnitude_of(x)[0], {"n": np.array([-3, 0, 1, 3], np.int32)})
    assert found.tolist() == [12.0, 6.0, 8.0, 12.0]
