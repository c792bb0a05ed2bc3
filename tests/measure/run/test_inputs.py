"""Values to measure with: normal and repeatable."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.tensor import placeholder
from ansorpy.measure.run.inputs import input_array


def test_floats_are_standard_normal_and_the_same_every_time():
    op = placeholder((1000, 37), name="A")
    values = input_array(op, 3)
    assert values.shape == (1000, 37) and values.dtype == np.float32
    assert abs(values.mean()) < 0.05 and abs(values.std() - 1) < 0.05
    assert np.array_equal(values, input_array(op, 3))
    assert not np.array_equal(values, input_array(op, 4))
    assert not np.array_equal(values, input_array(placeholder((1000, 37), name="B"), 3))


def test_a_tensor_too_large_to_draw_repeats_nowhere_in_step():
    values = input_array(placeholder((5, 1 << 20), name="W"), 0)
    flat = values.reshape(-1)
    block = 131_101
    assert np.isin(flat[-100:], flat[:block]).all()
    assert (flat[block : block + 10000] != flat[:10000]).mean() > 0.99
    assert (values[0, :5000] != values[1, :5000]).mean() > 0.99
