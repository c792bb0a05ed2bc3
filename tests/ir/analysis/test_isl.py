"""The translation into isl agrees with evaluation at every point of small domains."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import islpy
import pytest
from hypothesis import assume, given

from ansorpy.ir.analysis.access import domain_of
from ansorpy.ir.analysis.isl import Domain, decide
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast, Const, Expr, Var
from ansorpy.ir.tensor import compute, placeholder
from tests.budget import examples
from tests.ir.scalar import INTEGERS, VARS, value

EXTENTS = dict(zip(VARS, (5, 1, 4, 3), strict=True))


def points() -> Iterator[dict[Expr, int]]:
    for point in itertools.product(*map(range, EXTENTS.values())):
        yield dict(zip(VARS, point, strict=True))


def members(found: islpy.Map) -> set[tuple[int, ...]]:
    """The pairs of a finite map, each as one tuple."""
    known: set[tuple[int, ...]] = set()
    pairs = found.wrap().flatten()
    dims = range(pairs.dim(islpy.dim_type.set))

    def add(point: islpy.Point) -> None:
        at = (point.get_coordinate_val(islpy.dim_type.set, d) for d in dims)
        known.add(tuple(v.to_python() for v in at))

    pairs.foreach_point(add)
    return known


@examples(150)
@given(index=INTEGERS, a=INTEGERS, c=INTEGERS)
def test_accesses_are_those_of_the_interpreter(index: Expr, a: Expr, c: Expr) -> None:
    found = Domain(EXTENTS).access((index,), (9,), "T", (a <= c,))
    assume(found.exact)
    expected = {(*at.values(), value(index, at)) for at in points() if value(a, at) <= value(c, at)}
    assert members(found.map) == expected


@examples(100)
@given(a=INTEGERS, c=INTEGERS)
def test_opaque_conditions_are_bounded_from_both_sides(a: Expr, c: Expr) -> None:
    unknown = placeholder((9,), "int64", name="x")[VARS[0]] < 3
    domain = Domain(EXTENTS)
    for condition in ((a < c) & unknown, (a < c) | unknown):
        found = domain.within([condition])
        assert not found.exact
        assert found.must.is_subset(found.may)
    assume(domain.affine(a - c) is not None)
    both, either = domain.within([(a < c) & unknown]), domain.within([(a < c) | unknown])
    assert both.must.is_empty() and either.may.is_equal(domain.box)
    assert both.may.is_equal(either.must)


def test_relations_print_the_names_of_stages_and_axes() -> None:
    i, j = Var("i"), Var("j")
    found = Domain({i: 8, j: 7}, "C").access((i, j), (8, 7), "A", (i < j,))
    assert str(found.map) == "{ C[i, j] -> A[i, j] : 0 <= i <= 7 and j > i and 0 <= j <= 6 }"


def test_an_opaque_index_may_be_any_element_of_its_dimension() -> None:
    i = Var("i")
    table = placeholder((8,), "int64", name="table")
    found = Domain({i: 8}, "C").access((table[i], i), (5, 8), "A")
    assert not found.exact
    assert str(found.map) == "{ C[i] -> A[o0, i] : 0 <= i <= 7 and 0 <= o0 <= 4 }"


def test_what_may_wrap_around_is_opaque() -> None:
    i, j = Var("i"), Var("j")
    domain = Domain({i: 8, j: 8})
    narrow = Cast(DType.INT64, Cast(DType.INT8, i) + Const(1, DType.INT8))
    assert domain.affine(narrow) is None
    assert domain.affine(i * j) is None and domain.affine(i // j) is None


def test_a_let_stands_for_its_value() -> None:
    i, tile = Var("i"), Var("tile")
    domain = Domain({i: 8}, "C", {tile: i // 2 * 2})
    assert members(domain.access((tile,), (8,)).map) == {(n, n // 2 * 2) for n in range(8)}
    assert domain.affine(Var("other")) is None


def test_questions_that_take_too_long_are_undecided() -> None:
    i, j = Var("i"), Var("j")
    relation = Domain({i: 77, j: 50}).access(((i + j * 3) // 7, (i + j * 5) % 11), (40, 11))
    assert decide(relation.map.is_injective, 10) is None
    assert decide(relation.map.is_injective) is False


def test_other_errors_of_isl_are_not_taken_for_the_limit() -> None:
    def mixed() -> islpy.Set:
        return islpy.Set("{ [i] : i > 0 }") & islpy.Set("{ [i, j] : i > j }")

    with pytest.raises(islpy.Error, match="spaces don.t match"):
        decide(mixed)


def test_names_may_begin_with_a_digit() -> None:
    x = placeholder((4,), name="1st")
    y = compute((4,), lambda i: x[i] + 1.0, name="2nd", names=("0",))
    found = domain_of(y).access(y.axes, x.shape, x.name)
    assert str(found.map) == "{ _2nd[_0] -> _1st[_0] : 0 <= _0 <= 3 }"
