from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.ir import builders as b
from ansorpy.ir.analysis.affine import Linear, linear
from ansorpy.ir.analysis.interval import (
    INT64_MAX,
    INT64_MIN,
    Bounder,
    bounds,
    can_prove,
    decided,
    extents_of,
)
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import Axis, AxisKind, Compare, CompareOp, Expr, Var, as_expr, const
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.tensor import compute, placeholder, reduce_axis
from tests.ir.scalar import INTEGERS, points, ranges, value

i, j = Var("i"), Var("j")


@given(INTEGERS, ranges(), st.data())
def test_bounds_hold(e: Expr, known: dict[Var, tuple[int, int]], data: st.DataObject) -> None:
    low, high = bounds(e, known)
    assert low <= value(e, data.draw(points(known))) <= high


@given(INTEGERS, INTEGERS, st.sampled_from(list(CompareOp)), ranges(), st.data())
def test_proofs_hold(
    a: Expr, b: Expr, op: CompareOp, known: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    truth = can_prove(Compare(op, a, b), known)
    if truth is not None:
        assert value(Compare(op, a, b), data.draw(points(known))) == truth


def test_bounds_of_sums_see_that_a_variable_cancels() -> None:
    assert bounds(i * 3 - i * 2 - i, {}) == (0, 0)
    assert bounds(i, {}) == (INT64_MIN, INT64_MAX)
    assert bounds((i * 4 + j) // 4, {i: (0, 5), j: (0, 3)}) == (0, 5)
    assert bounds(i % 8, {i: (16, 19)}) == (0, 3)


def test_quotients_and_remainders_by_0_are_0() -> None:
    known = {i: (0, 9), j: (0, 3)}
    assert bounds(i // j, known) == (0, 9) and bounds(i % j, known) == (0, 2)
    assert bounds((i - 4) % j, known) == (0, 2)
    assert bounds((i - 4) // j, known) == (INT64_MIN, INT64_MAX)
    n = dim("n", 0, 40)
    tiles = as_expr((n + 7) // 8)
    assert extents_of(i // tiles * 8, {i: (0, n - 1)}) == (0, n * 8 - 8)


def test_axes_run_over_their_extents_and_loads_over_their_type() -> None:
    assert bounds(Axis("a", 5, AxisKind.SPACE) * 2, {}) == (0, 8)
    assert bounds(placeholder((3,), "uint8", name="x")[i], {}) == (0, 255)


def test_what_reads_data_may_wrap_around() -> None:
    x, small = (placeholder((3,), dtype, name="x")[i] for dtype in ("int64", "int32"))
    whole = (INT64_MIN, INT64_MAX)
    assert bounds(x + 1, {}) == bounds(b.abs(x), {}) == bounds(b.maximum(x, 1) * x, {}) == whole
    for wraps in (x + 1 > x, (x * 3).equal(x * 3 + 1), x - 1 < INT64_MAX, (x * 3).equal(1)):
        assert can_prove(wraps, {}) is None
    wide = small.astype("int64")
    assert bounds(wide * 3 + 1, {}) == (-3 * 2**31 + 1, 3 * 2**31 - 2)
    assert can_prove((x * 4).equal(x * 4), {}) and can_prove(wide * 3 + 1 > wide * 3, {})
    assert can_prove(x >= INT64_MIN, {}) and can_prove(b.maximum(x, 0) > -5, {})


def test_variables_do_not_wrap_around() -> None:
    assert can_prove(i + 1 > i, {}) and can_prove(const(INT64_MAX) > -5, {})
    assert bounds(i - 1, {}) == (INT64_MIN, INT64_MAX - 1)


def test_equality_is_refuted_by_divisibility() -> None:
    assert can_prove((i * 4 + 1).equal(j * 2), {}) is False
    assert can_prove((i * 4).equal(j * 2), {}) is None


def test_connectives() -> None:
    known = {i: (0, 3)}
    assert can_prove((i < 4) & (i >= 0), known) is True
    assert can_prove((i < 4) & (i >= 1), known) is None
    assert can_prove((i < 0) & (j < 1), known) is False
    assert can_prove((i < 4) | (j < 1), known) is True
    assert can_prove(const(3) < const(2), {}) is False


@pytest.mark.parametrize("op", CompareOp)
def test_comparisons_are_decided_where_all_values_agree(op: CompareOp) -> None:
    for low in range(-3, 4):
        for high in range(low, 4):
            truths = {
                bool(value(Compare(op, const(x), const(0)), {})) for x in range(low, high + 1)
            }
            assert decided(op, low, high) == (truths.pop() if len(truths) == 1 else None)


def test_what_is_shared_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0

    def counted(e: Expr) -> Linear:
        nonlocal visits
        visits += 1
        return linear(e)

    monkeypatch.setattr("ansorpy.ir.analysis.interval.linear", counted)
    e: Expr = i
    for _ in range(12):
        e = e // 3 * 7 + e % 3
    bounds(e, {i: (0, 99)})
    assert visits == 12
    can_prove((e < 5) & (e < 5), {i: (0, 99)})
    assert visits <= 12 + 16


NARROW: list[Callable[[Expr, Expr], Expr]] = [
    lambda x, y: x + y,
    lambda x, y: x - y * 3,
    lambda x, y: x * x,
    lambda x, y: x // (y * 2 + 1),
    lambda x, y: x % 7 + b.minimum(x, y),
    lambda x, y: b.maximum(x, y) // 5,
    lambda x, y: b.abs(x) + b.abs(-y),
    lambda x, y: b.select(x < y, x - y, y).astype("int32") * 5,
    lambda x, y: (x.astype("int64") - y.astype("int64")) * 9,
    lambda x, y: (x.astype("int32") * 7).astype("uint8") + 1,
]


@pytest.mark.parametrize("fn", NARROW)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("limits", [((2, 5), (0, 3)), ((0, 100), (20, 60)), ((-7, 9), (-128, 3))])
def test_bounds_of_narrow_arithmetic_hold_where_it_wraps_around_and_where_not(
    fn: Callable[[Expr, Expr], Expr],
    dtype: str,
    limits: tuple[tuple[int, int], tuple[int, int]],
) -> None:
    (x_low, x_high), (y_low, y_high) = limits
    if dtype == "uint8" and min(x_low, y_low) < 0:
        return
    xs, ys = (np.arange(low, high + 1, dtype=dtype) for low, high in limits)
    x, y = placeholder(xs.shape, dtype, name="x"), placeholder(ys.shape, dtype, name="y")
    z = compute((*xs.shape, *ys.shape), lambda i, j: fn(x[i], y[j]), name="z")
    values = Bounder({}, lambda load: limits[0] if load.source is x else limits[1])
    low, high = values.bounds(z.body)
    (found,) = run_dag(ComputeDAG([z]), {x: xs, y: ys})
    assert low <= found.min() and found.max() <= high
    if values.overflows:
        return
    exact = compute(z.shape, lambda i, j: fn(x[i].astype("int64"), y[j].astype("int64")), name="z")
    (want,) = run_dag(ComputeDAG([exact]), {x: xs, y: ys})
    np.testing.assert_array_equal(found, want.astype(found.dtype))


def test_bounds_of_reductions() -> None:
    x = placeholder((3, 5), "int8", name="x")
    k = reduce_axis(5, name="k")

    def of(e: Expr) -> tuple[tuple[int, int], bool]:
        values = Bounder({}, lambda load: (-3, 4))
        return values.bounds(e), values.overflows

    assert of(b.sum(x[i, k], k)) == ((-15, 20), False)
    assert of(b.sum(x[i, k] * 10, k)) == ((-128, 127), True)
    assert of(b.sum(x[i, k].astype("int64") * 10, k)) == ((-150, 200), False)
    assert of(b.max(x[i, k], k)) == of(b.min(x[i, k], k)) == ((-3, 4), False)
    assert of(b.prod(x[i, k].astype("int32"), k)) == ((-1024, 1024), False)
    assert of(b.prod(x[i, k], k)) == ((-128, 127), True)

    some = reduce_axis(dim("n", 0, 5), name="some")  # over nothing, the identity is the result
    large = x[i, 0].astype("int64") + 10
    assert of(b.sum(large, some)) == ((0, 70), False)
    assert of(b.min(large, some)) == ((7, INT64_MAX), False)
