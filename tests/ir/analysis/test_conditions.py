"""Conditions on axes against counting."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.ir import builders as ap
from ansorpy.ir.analysis.conditions import (
    conjuncts,
    held_at,
    least_added,
    share_held,
    skip_condition,
)
from ansorpy.ir.expr import Axis, AxisKind, Expr, Reduce
from ansorpy.ir.tensor import ComputeOp, compute, placeholder, reduce_axis


def axis(name: str, extent: int) -> Axis:
    return Axis(name, extent, AxisKind.SPACE)


def test_the_share_is_that_of_counting() -> None:
    h, k, w = axis("h", 7), axis("k", 3), axis("w", 5)
    conditions = [h * 2 + k >= 3, h * 2 + k < 12, w >= 2]
    counted = [2 * i + j >= 3 and 2 * i + j < 12 and n >= 2
               for i in range(7) for j in range(3) for n in range(5)]  # fmt: skip
    assert share_held(*conditions) == pytest.approx(sum(counted) / len(counted))
    assert share_held(ap.all_of(*conditions)) == share_held(*conditions)
    assert len(conjuncts(ap.all_of(*conditions))) == 3
    assert share_held() == 1.0


def test_where_conditions_hold() -> None:
    h = axis("h", 6)
    assert held_at([h], [h >= 2, h < 5]).tolist() == [False, False, True, True, True, False]
    assert held_at([h], []).all()


def test_more_values_than_can_be_counted_hold_always() -> None:
    i, j = axis("i", 1 << 12), axis("j", 1 << 12)
    assert share_held(i + j < 5) == 1.0
    assert share_held(i + j < 5, unknown=0.0) == 0.0


def summed(value: Expr, k: Axis) -> Reduce:
    op = compute((4,), lambda i: ap.sum(value, axis=k), name="s")
    assert isinstance(op, ComputeOp) and isinstance(op.body, Reduce)
    return op.body


def test_what_a_sum_skips() -> None:
    x = placeholder((8,), name="x")
    k = reduce_axis(8, name="k")
    inside = k >= 3
    assert skip_condition(summed(ap.select(inside, x[k], 0.0), k)) is not None
    assert skip_condition(summed(ap.select(inside, x[k], 1.0), k)) is None
    assert skip_condition(summed(ap.select(x[k] >= 0.0, x[k], 0.0), k)) is None
    assert skip_condition(summed(x[k], k)) is None
    assert np.isclose(share_held(inside), 5 / 8)


def test_the_least_that_a_sum_adds() -> None:
    x = placeholder((8,), name="x")
    k = reduce_axis(8, name="k")
    positive = ap.select(x[k] >= 0.0, x[k], 0.0)
    assert least_added(summed(x[k], k)) == 1.0
    assert least_added(summed(ap.select(k >= 3, x[k], 0.0), k)) == 5 / 8
    assert least_added(summed(positive, k)) == 0.0
    assert least_added(summed(ap.select(k >= 3, positive, 0.0), k)) == 0.0
