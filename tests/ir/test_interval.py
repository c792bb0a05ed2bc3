from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansorpy.ir.expr import Axis, AxisKind, Compare, CompareOp, Expr, Var, const
from ansorpy.ir.interval import INT64_MAX, INT64_MIN, bounds, can_prove
from ansorpy.ir.tensor import placeholder
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


def test_axes_run_over_their_extents_and_loads_over_their_type() -> None:
    assert bounds(Axis("a", 5, AxisKind.SPACE) * 2, {}) == (0, 8)
    assert bounds(placeholder((3,), "uint8", name="x")[i], {}) == (0, 255)


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
