"""Packed constants: the layout, and loops that reach outside of the constant."""

from __future__ import annotations

import numpy as np

from ansorpy.ir import builders as b
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.properties.test_schedules import inputs_of, interpreted


def test_a_constant_read_before_its_start_and_beyond_its_end_is_zero_there() -> None:
    x, w = placeholder((9,), name="x"), placeholder((4,), name="w", constant=True)
    t = reduce_axis(9, name="t")
    y = compute(
        (9,),
        lambda i: b.sum(b.select((i >= t) & (i - t < 4), x[t] * w[i - t], 0.0), axis=t),
        name="y",
    )
    state = State.initial([x, w, y]).pack("y", "w")
    data = inputs_of(state, np.random.default_rng(0))
    (expected,) = run_dag(state.definition, data)
    (found,) = interpreted(lower(state), data)  # the interpreter refuses to read outside
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_constant_is_packed_for_a_box_that_is_moved_inside() -> None:
    x, w = placeholder((4, 5), name="x"), placeholder((5, 16), name="w", constant=True)
    k = reduce_axis(5, name="k")
    c = compute((4, 16), lambda i, j: b.sum(x[i, k] * w[k, j], axis=k), name="c")
    y = compute(
        (4, 18),
        lambda i, j: b.select((j >= 1) & (j < 17), c[i, j - 1], 0.0),
        name="y",
    )
    state, _ = State.initial([x, w, y]).split("y", "j", (6,))
    state = state.compute_at("c", "y", state.stage("y").iters[1].name).pack("c", "w")
    data = inputs_of(state, np.random.default_rng(0))
    (expected,) = run_dag(state.definition, data)
    (found,) = interpreted(lower(state), data)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
