from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansorpy.ir.analysis.affine import (
    Linear,
    common_quotient,
    difference,
    divided,
    divisor_of,
    index_terms,
    linear,
)
from ansorpy.ir.analysis.interval import INT64_MAX, INT64_MIN, Bounder
from ansorpy.ir.builders import minimum
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, AxisKind, Cast, Const, Expr, Var, as_expr, const, walk
from ansorpy.ir.extents import dim
from ansorpy.ir.tensor import placeholder
from tests.ir.scalar import INTEGERS, VARS, points, value

i, j, k = Var("i"), Var("j"), Var("k")


@given(INTEGERS, st.data())
def test_a_linear_form_has_the_value_of_its_expression(e: Expr, data: st.DataObject) -> None:
    env = data.draw(points(dict.fromkeys(VARS, (-20, 20))))
    form = linear(e)
    assert 0 not in form.terms.values()
    assert form.const + sum(c * value(a, env) for a, c in form.terms.items()) == value(e, env)
    assert value(form.to_expr(), env) == value(e, env)


@given(INTEGERS, st.data())
def test_a_divisor_divides_every_value(e: Expr, data: st.DataObject) -> None:
    found, here = divisor_of(e), value(e, data.draw(points(dict.fromkeys(VARS, (-20, 20)))))
    assert here % found == 0 if found else here == 0


def test_sizes_have_the_divisors_of_their_steps() -> None:
    n, m = dim("n", 0, 60, step=6), dim("m", 0, 80, step=4)
    assert divisor_of(as_expr(n)) == 6 and divisor_of(as_expr(n * m)) == 24
    assert divisor_of(i * as_expr(m * 3) + 8) == 4
    assert divisor_of(minimum(i * 6, as_expr(n)) * 2) == 12
    assert divisor_of(as_expr(n) // 4) == 1


@given(INTEGERS, st.sampled_from([1, 2, 3, 4, 7, 12]), st.data())
def test_a_proved_quotient_and_remainder_have_the_values_of_division(
    e: Expr, divisor: int, data: st.DataObject
) -> None:
    ranges = dict.fromkeys(VARS, (-3, 5))
    env = data.draw(points(ranges))
    found = divided(linear(e), divisor, Bounder(ranges).linear_bounds)
    if found is not None:
        quotient, remainder = (value(form.to_expr(), env) for form in found)
        assert divisor * quotient + remainder == value(e, env) and 0 <= remainder < divisor


@given(st.integers(-50, 50), st.integers(0, 20), st.integers(1, 12))
def test_an_interval_has_a_common_quotient_if_all_its_values_have_it(
    low: int, extent: int, divisor: int
) -> None:
    quotients = {x // divisor for x in range(low, low + extent + 1)}
    expected = quotients.pop() if len(quotients) == 1 else None
    assert common_quotient(low, low + extent, divisor) == expected


def test_a_quotient_is_affine_where_the_rest_stays_below_the_divisor() -> None:
    known = Bounder({i: (0, 9), j: (0, 3)}).linear_bounds
    assert divided(linear(i * 4 + j - 8), 4, known) == (Linear({i: 1}, -2), Linear({j: 1}, 0))
    assert divided(linear(i * 4 - j - 1), 4, known) == (Linear({i: 1}, -1), Linear({j: -1}, 3))
    assert divided(linear(i * 4 + j + 1), 4, known) is None


def test_equal_atoms_are_gathered_and_vanish() -> None:
    assert linear(i // 3 + j - i // 3) == Linear({j: 1}, 0)
    assert linear((i + 1) * 4 - i * 4) == Linear({}, 4)


def test_a_product_of_two_variables_is_an_atom_and_commutes_with_constants() -> None:
    form = linear(i * j * 2 + const(3) * (i + 1))
    assert form.terms[i] == 3 and form.const == 3
    assert sorted(form.terms.values()) == [2, 3]


def test_numbers_wrap_around_and_keep_to_int64() -> None:
    assert linear(i * 2**62 * 4 + j) == Linear({j: 1}, 0)
    assert linear(i * (2**62 + 1) * 4 + 2**62 + 2**62) == Linear({i: 4}, INT64_MIN)
    for e in (i + INT64_MIN, i - INT64_MIN, j + i * INT64_MIN, i * (INT64_MIN + 1) - INT64_MAX):
        again = linear(e).to_expr()
        assert linear(again) == linear(e)
        assert all(c.type.holds(c.value) for c in walk(again) if isinstance(c, Const))


def test_a_difference_is_one_of_integers() -> None:
    least, most = linear(i + INT64_MIN), linear(i + INT64_MAX)
    assert difference(most, least) == Linear({}, 2**64 - 1)
    assert difference(linear(i // 3 + j), linear(i // 3)) == Linear({j: 1}, 0)


def test_what_is_shared_is_collected_once() -> None:
    total, power = i + 1, i + 1
    for _ in range(60):
        total, power = total + total, power * power
    assert linear(total) == Linear({i: 2**60}, 2**60)
    assert linear(power * 2 + power) == Linear({power: 3}, 0)


def test_narrow_integers_are_not_taken_apart() -> None:
    narrow = placeholder((4,), "int32", name="n")[i]
    e = Cast(DType.INT64, narrow + narrow)
    assert linear(e).terms == {e: 1}


def test_index_terms() -> None:
    a, b = Axis("a", 6, AxisKind.SPACE), Axis("b", 4, AxisKind.SPACE)
    assert index_terms(a * 2 + b - 3, (a, b)) == ({a: 2, b: 1}, -3)
    assert index_terms(a - a + 5, (a, b)) == ({}, 5)
    assert index_terms((a * 4 + b + 8) // 4, (a, b)) == ({a: 1}, 2)
    assert index_terms((a * 4 + b) % 4, (a, b)) == ({b: 1}, 0)
    assert index_terms((a * 4 + b + 1) // 4, (a, b)) is None
    assert index_terms(minimum(a, b), (a, b)) is None
    assert index_terms(a + i, (a, b)) is None
    assert index_terms(a + b, (a,)) is None
