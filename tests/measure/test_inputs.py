"""Values to measure with: normal, repeatable, and inside what they index."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.measure.inputs import input_array, input_ranges


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
    block = (1 << 20) + 7
    assert np.isin(flat[-100:], flat[:block]).all()
    assert (flat[block : block + 10000] != flat[:10000]).mean() > 0.99
    assert (values[0, :5000] != values[1, :5000]).mean() > 0.99


def test_integers_that_index_stay_inside_and_the_others_are_small():
    data = placeholder((11, 4), name="data")
    rows = placeholder((6,), "int64", name="rows")
    shift = placeholder((6,), "uint8", name="shift")
    mask = placeholder((6,), "bool", name="mask")
    gathered = compute((6, 4), lambda i, j: data[rows[i], j], name="G")
    shifted = compute((6,), lambda i: shift[i], name="S")
    kept = compute((6,), lambda i: mask[i], name="M")
    ranges = input_ranges(ComputeDAG([gathered, shifted, kept]))
    assert ranges == {"rows": (0, 11), "shift": (0, 16), "mask": (0, 2)}
    picked = input_array(rows, 0, ranges["rows"])
    assert picked.min() >= 0 and picked.max() < 11
    assert input_array(mask, 0, ranges["mask"]).dtype == DType.BOOL.numpy


def test_an_index_into_two_tensors_stays_within_the_smaller() -> None:
    small, big = placeholder((10,), name="small"), placeholder((100,), name="big")
    at = placeholder((5,), "int32", name="at")
    for first, second in ((small, big), (big, small)):
        picked = compute((5,), lambda i: first[at[i]] + second[at[i]], name="picked")  # noqa: B023
        assert input_ranges(ComputeDAG([picked])) == {"at": (0, 10)}
