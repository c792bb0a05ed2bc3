"""Formulas, recorded once, give the same values for every table as columns do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.schedule.tables.formulas import Formula, Formulas, symbols_of
from ansorpy.schedule.tables.size import (
    Column,
    Size,
    above,
    as_array,
    ceil_div,
    size_gcd,
    size_max,
    size_min,
    split_extents,
)
from tests.budget import examples

NAMES = ("a", "b", "c")
Build = Callable[[Mapping[str, Size]], Size]

OPERATIONS: tuple[Callable[[Size, Size], Size], ...] = (
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x // size_max(y, 1),
    lambda x, y: ceil_div(x, size_max(y, 1)),
    size_min,
    size_max,
    lambda x, y: size_gcd(size_max(x, 0), size_max(y, 0)),
    lambda x, y: above(x, 3) * y,
)


def computed(steps: list[tuple[int, int, int]], values: Mapping[str, Size]) -> list[Size]:
    """*values* and two numbers, then one size per step, made from two earlier ones."""
    sizes: list[Size] = [*values.values(), 0, 1]
    for op, x, y in steps:
        sizes.append(OPERATIONS[op](sizes[x % len(sizes)], sizes[y % len(sizes)]))
    return sizes


STEP = st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 40), st.integers(0, 40))


@examples(150)
@given(steps=st.lists(STEP, max_size=9), seed=st.integers(0, 999), fixed=st.booleans())
def test_a_program_gives_what_columns_give(
    steps: list[tuple[int, int, int]], seed: int, fixed: bool
) -> None:
    table = np.random.default_rng(seed).integers(1, 7, (11, 3))
    table[:, 1] = 5 if fixed else table[:, 1]
    columns = {name: Column(table[:, at]) for at, name in enumerate(NAMES)}
    formulas = Formulas(NAMES, {"b": 5} if fixed else {})
    noted = computed(steps, formulas.values)
    found = formulas.program(symbols_of(noted)).run(table)
    for size, expected in zip(noted, computed(steps, columns), strict=True):
        known = found[size] if isinstance(size, Formula) else size
        np.testing.assert_array_equal(as_array(known, 11), as_array(expected, 11))


def test_equal_operations_are_one() -> None:
    values = Formulas(NAMES, {}).values
    assert values["a"] * values["b"] is values["a"] * values["b"]
    assert values["a"] * values["b"] is not values["b"] // values["a"]


def test_a_formula_knows_the_columns_it_depends_on() -> None:
    values = Formulas(NAMES, {"b": 4}).values
    outer, *_ = split_extents(64, [values["a"], values["b"]])
    assert isinstance(outer, Formula) and outer.columns == 0b001
    both = outer + values["c"]
    assert isinstance(both, Formula) and both.columns == 0b101


def test_known_results_are_not_recorded() -> None:
    values = Formulas(NAMES, {}).values
    a = values["a"]
    assert (a * 0, a - a, size_gcd(a, 1)) == (0, 0, 1)
    assert a * 1 is a and a + 0 is a and size_min(a, a) is a and size_gcd(0, a) is a


def test_a_symbol_has_no_truth_value_and_no_columns_beside() -> None:
    a = Formulas(NAMES, {}).values["a"]
    with pytest.raises(TypeError, match="must not branch"):
        bool(a)
    with pytest.raises(TypeError, match="do not mix"):
        a + Column([1])
    with pytest.raises(TypeError, match="do not mix"):
        Column([1]) + a


def test_quotients_are_exact_next_to_whole_numbers() -> None:
    formulas = Formulas(NAMES, {})
    quotient = formulas.values["a"] // formulas.values["b"]
    assert isinstance(quotient, Formula)
    b = np.arange(1, 4097) * 7919 + 1
    a = b * ((1 << 51) // b) - 1
    table = np.stack([a, b, b], axis=1)
    found = formulas.program([quotient]).run(table)[quotient]
    np.testing.assert_array_equal(found.values, a // b)
