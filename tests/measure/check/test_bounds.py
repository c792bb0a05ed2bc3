from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.ir.builders import erf, exp, max, maximum, minimum, select, sigmoid, sum, tanh
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Expr
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.check.bounds import largest_value
from ansorpy.measure.check.compare import tolerance

BOUNDED: dict[str, tuple[Callable[[Expr], Expr], float]] = {
    "tanh": (tanh, 1.0),
    "sigmoid": (sigmoid, 1.0),
    "clip": (lambda x: minimum(maximum(x, -3), 6), 6.0),
    "clip_below_first": (lambda x: maximum(minimum(x, 2), -5), 5.0),
    "hard_sigmoid": (lambda x: maximum(minimum(x * 0.2 + 0.5, 1), 0), 1.0),
    "product": (lambda x: sigmoid(x) * (tanh(x) * 3.0), 3.0),
    "choice": (lambda x: select(x < 0, -erf(x), tanh(x) + 1.0), 2.0),
}
UNBOUNDED: dict[str, Callable[[Expr], Expr]] = {
    "itself": lambda x: x,
    "relu": lambda x: maximum(x, 0),
    "swish": lambda x: x * sigmoid(x),
    "exp": exp,
    "other_quotient": lambda x: 1.0 / (exp(x) - 1.0),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_functions_that_saturate(name: str, rng: np.random.Generator) -> None:
    fn, bound = BOUNDED[name]
    x = placeholder((400,), name="x")
    y = compute((400,), lambda i: fn(x[i]), name="y")
    assert largest_value(y) == bound
    values = 20 * rng.standard_normal(400, np.float32)
    (found,) = run_dag(ComputeDAG.of([x, y]), {"x": values})
    assert np.abs(found).max() <= bound


@pytest.mark.parametrize("name", UNBOUNDED)
def test_functions_that_do_not(name: str) -> None:
    x = placeholder((4,), name="x")
    y = compute((4,), lambda i: UNBOUNDED[name](x[i]), name="y")
    assert largest_value(y) == math.inf


def test_through_stages_and_maxima() -> None:
    x = placeholder((4, 5), name="x")
    k, j = reduce_axis(5, name="k"), reduce_axis(5, name="j")
    y = compute((4, 5), lambda i, j: tanh(x[i, j]), name="y")
    assert largest_value(compute((4,), lambda i: max(y[i, k], axis=k), name="top")) == 1
    assert largest_value(compute((4,), lambda i: sum(y[i, j], axis=j), name="all")) == math.inf


@pytest.mark.parametrize("terms", [256, 4096])
def test_a_sum_behind_a_tangent_may_be_rounded(terms: int, rng: np.random.Generator) -> None:
    a, b = placeholder((9, terms), name="a"), placeholder((terms, 64), name="b")
    k = reduce_axis(terms, name="k")
    total = compute((9, 64), lambda i, j: sum(a[i, k] * b[k, j], axis=k), name="total")
    out = compute((9, 64), lambda i, j: tanh(total[i, j]), name="out")
    x, y = (rng.standard_normal(t.shape, np.float32) for t in (a, b))
    one_by_one = np.zeros((9, 64), np.float32)
    for term in range(terms):
        one_by_one += x[:, term, None] * y[term]
    error = np.abs(np.tanh(one_by_one) - np.tanh(x.astype(np.float64) @ y)).max()
    allowed = tolerance(ComputeDAG.of([a, b, out]), out)
    assert error < allowed < 0.01


@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0])
def test_a_scale_behind_a_tangent_allows_no_more(scale: float) -> None:
    a, k = placeholder((9, 400), name="a"), reduce_axis(400, name="k")
    total = compute((9,), lambda i: sum(a[i, k], axis=k), name="total")
    out = compute((9,), lambda i: tanh(total[i]) * scale, name="out")
    plain = compute((9,), lambda i: tanh(total[i]), name="plain")
    allowed = tolerance(ComputeDAG.of([a, out]), out)
    assert allowed == tolerance(ComputeDAG.of([a, plain]), plain) < 1e-3


def test_what_is_shared_is_looked_at_once() -> None:
    x = placeholder((4,), name="x")

    def doubled(i: Expr) -> Expr:
        value = tanh(x[i])
        for _ in range(200):
            value = value + value
        return value

    assert largest_value(compute((4,), doubled, name="y")) == 2.0**200
