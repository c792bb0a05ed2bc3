"""Literal powers and broadcast indices."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph.op import Elementwise, Fn
from ansorpy.graph.ops.elementwise import FUNCTIONS, elementwise, power
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Load, const, walk
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder

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


def test_every_function_has_a_definition() -> None:
    assert set(FUNCTIONS) == set(Fn)


def test_an_operand_of_the_full_shape_is_read_at_its_own_axes() -> None:
    x = placeholder((1, 4), name="x")
    stretched = placeholder((1, 1), name="y")
    result = elementwise(Elementwise(Fn.ADD), [x, stretched], Names())
    loads = [e for e in walk(result.body) if isinstance(e, Load)]
    assert loads[0].indices == result.axes
    assert loads[1].indices[0] is result.axes[0]
    assert not isinstance(loads[1].indices[1], Axis)


def test_literals_take_the_tensors_type() -> None:
    x = placeholder((3,), "float64", name="x")
    assert elementwise(Elementwise(Fn.MUL), [x, const(0.5, x.dtype)], Names()).dtype is x.dtype
