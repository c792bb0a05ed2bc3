"""Integers to measure with: every index inside, narrow types to their ends, sums exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.builders import maximum, minimum, select, sum
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from ansorpy.measure.run.inputs import input_array
from ansorpy.measure.run.ranges import input_ranges


def test_integers_that_index_stay_inside_and_the_others_are_their_types():
    data = placeholder((11, 4), name="data")
    rows = placeholder((6,), "int64", name="rows")
    shift = placeholder((6,), "uint8", name="shift")
    mask = placeholder((6,), "bool", name="mask")
    gathered = compute((6, 4), lambda i, j: data[rows[i], j], name="G")
    shifted = compute((6,), lambda i: shift[i], name="S")
    kept = compute((6,), lambda i: mask[i], name="M")
    ranges = input_ranges(ComputeDAG([gathered, shifted, kept]))
    assert ranges == {"rows": (0, 11), "shift": (0, 256), "mask": (0, 2)}
    picked = input_array(rows, 0, ranges["rows"])
    assert picked.min() >= 0 and picked.max() < 11
    assert input_array(mask, 0, ranges["mask"]).dtype == DType.BOOL.numpy


def test_an_index_into_two_tensors_stays_within_the_smaller() -> None:
    small, big = placeholder((10,), name="small"), placeholder((100,), name="big")
    at = placeholder((5,), "int32", name="at")
    for first, second in ((small, big), (big, small)):
        picked = compute((5,), lambda i: first[at[i]] + second[at[i]], name="picked")  # noqa: B023
        assert input_ranges(ComputeDAG([picked])) == {"at": (0, 10)}


@pytest.mark.parametrize(
    ("index", "want"),
    [
        (lambda v, i: v * 2, (0, 11)),
        (lambda v, i: v - 1, (1, 22)),
        (lambda v, i: v * -3 + 20, (0, 7)),
        (lambda v, i: v + i, (0, 17)),
        (lambda v, i: v - i, (4, 21)),
        (lambda v, i: v // 2, (0, 42)),
        (lambda v, i: v * 3 - v * 2, (0, 21)),
        (lambda v, i: v % 21, (-(2**31), 2**31)),
        (lambda v, i: minimum(maximum(v, 0), 20), (-(2**31), 2**31)),
        (lambda v, i: select(i > 2, v + 5, v), (0, 16)),
    ],
)
def test_arithmetic_on_an_index_is_taken_back(
    index: Callable[[Expr, Expr], Expr], want: tuple[int, int]
) -> None:
    data, at = placeholder((21,), name="data"), placeholder((5,), "int32", name="at")
    picked = compute((5,), lambda i: data[index(at[i].astype("int64"), i)], name="picked")
    assert input_ranges(ComputeDAG([picked])) == {"at": want}


def test_an_index_computed_by_another_stage_or_from_two_tensors_stays_inside(
    rng: np.random.Generator,
) -> None:
    data = placeholder((21,), name="data")
    a, b = placeholder((5,), "int8", name="a"), placeholder((5,), "int64", name="b")
    moved = compute((5,), lambda i: a[i].astype("int64") * 3 - 4 + b[i], name="moved")
    picked = compute((5,), lambda i: data[moved[i]], name="picked")
    ranges = input_ranges(ComputeDAG([picked]))
    low = (ranges["a"][0]) * 3 - 4 + ranges["b"][0]
    high = (ranges["a"][1] - 1) * 3 - 4 + ranges["b"][1] - 1
    assert 0 <= low < high < 21
    assert all(end - begin > 1 for begin, end in ranges.values())


def test_a_guard_may_keep_an_index_inside_and_nothing_at_all_is_refused() -> None:
    data, at = placeholder((7,), name="data"), placeholder((5,), "int32", name="at")

    def shifted(i: Expr) -> Expr:
        return data[at[i].astype("int64") * 100 + i * 3 - 5]

    guarded = compute((5,), lambda i: select(i < 0, shifted(i), 0.0), name="guarded")
    assert input_ranges(ComputeDAG([guarded])) == {"at": (0, 7)}
    with pytest.raises(UsageError, match="no values of at are known to keep every index into data"):
        input_ranges(ComputeDAG([compute((5,), shifted, name="picked")]))


def test_arithmetic_in_a_narrow_type_does_not_wrap_on_the_way_to_an_index() -> None:
    data, at = placeholder((1000,), name="data"), placeholder((5,), "int8", name="at")
    picked = compute((5,), lambda i: data[at[i] * 2], name="picked")
    assert input_ranges(ComputeDAG([picked])) == {"at": (0, 64)}


def products(k: int, result: str) -> ComputeDAG:
    a, b = placeholder((3, k), "uint8", name="a"), placeholder((k,), "int8", name="b")
    r = reduce_axis(k, name="r")
    return ComputeDAG(
        [compute((3,), lambda i: sum(a[i, r].astype(result) * b[r].astype(result), r), name="c")]
    )


def test_bytes_take_all_their_values_where_sums_stay_exact() -> None:
    assert input_ranges(products(4096, "int32")) == {"a": (0, 256), "b": (-128, 128)}
    assert input_ranges(products(4096, "float32")) == {"a": (0, 256), "b": (-128, 128)}
    assert input_ranges(products(100_000, "int32")) == {"a": (0, 128), "b": (-64, 64)}
    assert input_ranges(products(16, "int16")) == {"a": (0, 64), "b": (-32, 32)}
    assert input_ranges(products(4096, "float16")) == {"a": (0, 16), "b": (-8, 8)}
