"""Floats as integers, and index arithmetic that must not trap."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir import builders as b
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.run_native import run_native

LARGEST = {
    "int8": 127, "uint8": 255, "int16": 32767, "uint16": 65535, "int32": 2**31 - 200,
    "uint32": 2**32 - 300, "int64": 2**62, "uint64": 2**64 - 2**41,
}  # fmt: skip


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
@pytest.mark.parametrize("kind", LARGEST)
def test_floats_become_every_integer_of_the_type(kind: str, vector: bool) -> None:
    x = placeholder((37,), name="x")
    state = State.initial([x, compute((37,), lambda i: x[i].astype(kind), name="y")])
    state = state.vectorize("y", ["i"]) if vector else state
    data = np.linspace(0, LARGEST[kind], 37).astype(np.float32)
    data = np.minimum(data, np.nextafter(np.float32(LARGEST[kind]), np.float32(0)))
    if kind.startswith("int"):
        data[::2] *= -1
    (found,) = run_native(lower(state), {"x": data})
    np.testing.assert_array_equal(found, data.astype(kind))


@pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])
def test_a_guard_keeps_an_index_from_being_divided_by_zero(vector: bool) -> None:
    x = placeholder((40,), name="x")
    y = compute((5, 8), lambda i, j: b.select(j > 0, x[(i * 8) // j], -1.0), name="y")
    state = State.initial([x, y])
    state = state.vectorize("y", ["j"]) if vector else state
    data = np.arange(40, dtype=np.float32)
    (found,) = run_native(lower(state), {"x": data})
    i, j = np.indices((5, 8))
    expected = np.where(j > 0, data[(i * 8) // np.maximum(j, 1)], -1)
    np.testing.assert_array_equal(found, expected)
