"""Elementwise functions against float64 over the whole range of float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from ansorpy.errors import CodegenError
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Function
from tests.codegen.programs import Array, Compiled, at, buffer, empty, nest, program, put

SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1e-45, -1e-45, 1e-38, 3e38, -3e38,
     88.7, 88.8, -87.5, -103, -104, -110, 2, 3, -2, -3], np.float32,
)  # fmt: skip


def evaluate(fn: Callable[..., Expr], *xs: Array, dtype: DType = DType.FLOAT32) -> Array:
    n = len(xs[0])
    sources = [buffer(f"x{i}", n, dtype=dtype) for i in range(len(xs))]
    out = buffer("y", n, dtype=dtype)
    body = nest(f"v{n}", lambda i: put(out, (i,), fn(*(at(s, i) for s in sources))))
    y = empty((n,), dtype)
    Compiled(program(body, sources, [out]))(*xs, y)
    return y


def samples(low: float, high: float) -> Array:
    """Points of the range, every exponent, and the special values."""
    rng = np.random.default_rng(0)
    everywhere = rng.integers(0, 2**32, 50001, dtype=np.uint32).view(np.float32)
    near = rng.uniform(low, high, 50003).astype(np.float32)
    return np.concatenate([near, everywhere, SPECIAL])


def ulps(got: Array, exact: Array) -> float:
    """Largest error in units of the last place; infinite when a limit is wrong."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        limits = ~np.isfinite(rounded)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        if not same[limits].all():
            return float("inf")
        spacing = np.spacing(np.abs(rounded[~limits])).astype(float)
        errors = np.abs(got[~limits].astype(float) - exact[~limits]) / spacing
    return float(np.nan_to_num(errors, nan=np.inf).max())


CASES = [
    (Function.EXP, np.exp, (-105, 90), 1.1),
    (Function.LOG, np.log, (0, 10), 1.0),
    (Function.TANH, np.tanh, (-10, 10), 5.0),
    (Function.ERF, special.erf, (-5, 5), 6.0),
    (Function.SIN, np.sin, (-20, 20), 1.6),
    (Function.COS, np.cos, (-1e5, 1e5), 1.6),
    (Function.SQRT, np.sqrt, (0, 10), 0.5),
    (Function.RSQRT, lambda x: 1 / np.sqrt(x), (0, 10), 1.5),
    (Function.FLOOR, np.floor, (-10, 10), 0),
    (Function.CEIL, np.ceil, (-10, 10), 0),
    (Function.ROUND, np.round, (-10, 10), 0),
    (Function.ABS, np.abs, (-10, 10), 0),
    (Function.NEG, np.negative, (-10, 10), 0),
]


@pytest.mark.parametrize(("fn", "exact", "span", "bound"), CASES, ids=lambda c: str(c)[:12])
def test_error_of_a_float32_function(fn: Function, exact: Any, span: Any, bound: float) -> None:
    x = samples(*span)
    if fn in (Function.SIN, Function.COS):
        x = x[~(np.abs(x) > 2**30) | np.isinf(x)]
    with np.errstate(all="ignore"):
        want = exact(x.astype(float))
    assert ulps(evaluate(lambda v: Call(fn, (v,)), x), want) <= bound


def test_power_with_every_special_pair() -> None:
    rng = np.random.default_rng(1)
    pairs = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    wide = rng.uniform(0, 10, 20001), rng.uniform(-20, 20, 20001)
    x = np.concatenate([pairs[0], wide[0], rng.integers(-9, 9, 999)]).astype(np.float32)
    y = np.concatenate([pairs[1], wide[1], rng.integers(-9, 9, 999)]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(float), y.astype(float))
    assert ulps(evaluate(lambda a, b: a**b, x, y), want) <= 1.0


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, -1.0, 0.5, 0.0])
def test_power_with_a_constant(exponent: float) -> None:
    x = samples(-10, 10)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(float), np.full(len(x), exponent))
    assert ulps(evaluate(lambda a: a**exponent, x), want) <= 1.5


@pytest.mark.parametrize(("fn", "exact"), [(c[0], c[1]) for c in CASES[:8]])
def test_float64_functions(fn: Function, exact: Any) -> None:
    x = np.random.default_rng(2).uniform(0.1, 5, 37)
    got = evaluate(lambda v: Call(fn, (v,)), x, dtype=DType.FLOAT64)
    np.testing.assert_allclose(got, exact(x), rtol=1e-15)


@pytest.mark.parametrize("op", [BinaryOp.MAX, BinaryOp.MIN])
def test_maximum_propagates_nan_from_either_side(op: BinaryOp) -> None:
    x = np.array([1, np.nan, 2, np.nan, np.inf, -np.inf, 3] * 5, np.float32)
    y = np.array([np.nan, 1, 5, np.nan, np.nan, 4, -3] * 5, np.float32)
    exact = np.maximum if op is BinaryOp.MAX else np.minimum
    np.testing.assert_array_equal(evaluate(lambda a, b: Binary(op, a, b), x, y), exact(x, y))


@pytest.mark.parametrize("op", [BinaryOp.MAX, BinaryOp.MIN])
def test_maximum_with_a_constant_keeps_nan(op: BinaryOp) -> None:
    x = np.array([1, np.nan, -2, 0.25, np.inf, -np.inf] * 3, np.float32)
    exact = np.maximum if op is BinaryOp.MAX else np.minimum
    from_right = evaluate(lambda a: Binary(op, a, a * 0.0 + 0.5), x)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(from_right, exact(x, x * 0 + np.float32(0.5)))


def test_a_function_of_integers_is_refused() -> None:
    x = np.arange(4, dtype=np.int32)
    with pytest.raises(CodegenError, match="exp of int32 values is not defined"):
        evaluate(lambda v: Call(Function.EXP, (v,)), x, dtype=DType.INT32)
