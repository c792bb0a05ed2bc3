"""Literal powers, functions of numbers of every size, remainders and broadcast indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansorpy.graph.ops import Elementwise, Fn, Lrn
from ansorpy.graph.ops.elementwise import FUNCTIONS, power
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import as_dtype
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Load, Select, const, walk
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.run_native import run_native

Array = NDArray[Any]
QUARTERS = [q / 4 for q in range(-8, 9) if q]


@pytest.mark.parametrize("exponent", [*QUARTERS, 0.3, 2.5, 7.0])
def test_a_literal_power_equals_numpy(exponent: float) -> None:
    x = placeholder((50,), "float64", name="x")
    y = compute((50,), lambda i: power(x[i], exponent), name="y")
    values = np.random.default_rng(0).uniform(0.1, 5.0, 50)
    (got,) = run_dag(ComputeDAG([y]), {"x": values})
    np.testing.assert_allclose(got, values**exponent, rtol=1e-14)
    has_power = any(isinstance(e, Binary) and e.op is BinaryOp.POW for e in walk(y.body))
    assert has_power == (exponent not in QUARTERS)


@pytest.mark.parametrize("exponent", [*QUARTERS, np.inf])
def test_literal_powers_of_special_numbers_equal_those_of_numpy(exponent: float) -> None:
    numbers = np.array([0, 1, 4, np.inf, np.nan], np.float32)
    values = np.append(numbers, -numbers)
    x = placeholder(values.shape, name="x")
    y = Elementwise(Fn.POW).define([x, const(exponent, x.dtype)], Names())
    state = State.initial(ComputeDAG([y])).vectorize(y.name, [y.axes[0].name])
    with np.errstate(all="ignore"):
        want = np.power(values, np.full_like(values, exponent))
        found = [
            *run_dag(state.definition, {"x": values}),
            *run_native(lower(state), {"x": values}),
        ]
    for got in found:
        np.testing.assert_allclose(got, want, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def test_response_normalisation_takes_powers_of_positive_numbers_only() -> None:
    y = Lrn(3, 1e-2, 0.75, 1.0).define([placeholder((1, 4, 2, 2), name="x")], Names())
    assert not any(isinstance(e, Select) for e in walk(y.body))


def test_every_function_has_a_definition() -> None:
    assert set(FUNCTIONS) == set(Fn)


def test_an_operand_of_the_full_shape_is_read_at_its_own_axes() -> None:
    x = placeholder((1, 4), name="x")
    stretched = placeholder((1, 1), name="y")
    result = Elementwise(Fn.ADD).define([x, stretched], Names())
    loads = [e for e in walk(result.body) if isinstance(e, Load)]
    assert loads[0].indices == result.axes
    assert loads[1].indices[0] is result.axes[0]
    assert not isinstance(loads[1].indices[1], Axis)


def test_literals_take_the_tensors_type() -> None:
    x = placeholder((3,), "float64", name="x")
    assert Elementwise(Fn.MUL).define([x, const(0.5, x.dtype)], Names()).dtype is x.dtype


def _elu(x: Array) -> Array:
    return np.where(x < 0, 1.5 * np.expm1(x), x)


WIDE: dict[Fn, tuple[tuple[float, ...], Callable[[Array], Array]]] = {
    Fn.CELU: ((1.5,), lambda x: np.where(x < 0, 1.5 * np.expm1(x / 1.5), x)),
    Fn.ELU: ((1.5,), _elu),
    Fn.SELU: ((1.5, 1.25), lambda x: 1.25 * _elu(x)),
    Fn.SOFTPLUS: ((), lambda x: np.logaddexp(0, x)),
    Fn.TANH: ((), np.tanh),
}
SINGLE: dict[Fn, tuple[tuple[float, ...], Callable[[Array], Array]]] = {
    Fn.ACOS: ((), np.arccos), Fn.ACOSH: ((), np.arccosh), Fn.ASIN: ((), np.arcsin),
    Fn.ASINH: ((), np.arcsinh), Fn.ATAN: ((), np.arctan), Fn.ATANH: ((), np.arctanh),
    Fn.COSH: ((), np.cosh), Fn.SINH: ((), np.sinh),
}  # fmt: skip
"""Functions that are as precise as their type, and those that are as precise as float32."""


@pytest.mark.parametrize(
    ("fn", "dtype", "error"),
    [*((fn, "float32", 1e-6) for fn in WIDE | SINGLE), *((fn, "float64", 1e-14) for fn in WIDE)],
)
def test_functions_are_accurate_for_numbers_of_every_size(fn: Fn, dtype: str, error: float) -> None:
    sizes = np.append(np.geomspace(1e-30, 80, 200), [0, 0.25, np.inf, np.nan])
    values = np.append(sizes, -sizes).astype(dtype)
    params, function = (WIDE | SINGLE)[fn]
    x = placeholder(values.shape, dtype, name="x")
    y = Elementwise(fn, params).define([x], Names())
    state = State.initial(ComputeDAG([y])).vectorize(y.name, [y.axes[0].name])
    with np.errstate(all="ignore"):
        want = function(values.astype(np.float64))
        found = [
            *run_dag(state.definition, {"x": values}),
            *run_native(lower(state), {"x": values}),
        ]
    for got in found:
        np.testing.assert_allclose(got, want, rtol=error)


def remainders(dtype: str, x: Any, y: Any) -> list[np.ndarray]:
    """``fmod(x, y)`` by the interpreter and as machine code."""
    a, b = (placeholder(x.shape, dtype, name=name) for name in "ab")
    result = Elementwise(Fn.REMAINDER).define([a, b], Names())
    state = State.initial(ComputeDAG([result])).vectorize(result.name, [result.axes[0].name])
    data = {"a": x, "b": y}
    return [*run_dag(state.definition, data), *run_native(lower(state), data)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [1, 4, 10, 20, 50, 100])
def test_a_remainder_of_floats_equals_that_of_numpy(dtype: str, exponent: int) -> None:
    rng = np.random.default_rng([exponent, *map(ord, dtype)])
    kind = as_dtype(dtype).numpy
    y = rng.uniform(0.05, 2.0, 2000) * rng.choice([-1, 1], 2000)
    x = rng.uniform(-1, 1, 2000) * 2.0**exponent * np.abs(y)
    x[::3] = y[::3] * np.rint(x[::3])  # multiples, within a rounding
    limit = 60000 if dtype == "float16" else 1e38
    x, y = np.clip(x, -limit, limit).astype(kind), y.astype(kind)
    want = np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(kind)
    for got in remainders(dtype, x, y):
        np.testing.assert_array_equal(got, want)


def test_remainders_of_special_floats_equal_those_of_numpy() -> None:
    values = np.array([0, -0.0, 1e-40, 0.1, -0.7, 3, np.inf, -np.inf, np.nan], np.float32)
    x, y = (np.ascontiguousarray(v).reshape(-1) for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    for got in remainders("float32", x, y):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_a_remainder_of_integers_equals_that_of_numpy(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.min + 1, 1, 3, 7, 100, limits.max], dtype)
    values = np.append(values, values[1:] * -1 if limits.min else values)
    values = values[values != 0]
    x, y = (np.ascontiguousarray(v).reshape(-1) for v in np.meshgrid(values, values))
    for got in remainders(dtype, x, y):
        np.testing.assert_array_equal(got, np.fmod(x, y))
