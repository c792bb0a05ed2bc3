from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.ir.analysis.affine import Linear, linear
from ansorpy.ir.analysis.structural_equality import same_structure
from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, AxisKind, Call, Const, Expr, Function, Var, as_expr, const, walk
from ansorpy.ir.interpret import run_dag
from ansorpy.ir.loops import Buffer, For, ForKind, If, Scope, Seq, Store
from ansorpy.ir.rewrite.identities import ROWS, Row
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.rewrite.simplify import simplify, simplify_stmt
from ansorpy.ir.tensor import compute, placeholder
from tests.budget import examples
from tests.ir.scalar import INTEGERS, VARS, points, ranges, value

i, j, k = Var("i"), Var("j"), Var("k")


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_every_row_holds_on_random_integers(row: Row) -> None:
    rng = np.random.default_rng(0)
    letters = {e for e in walk(row.left) if not isinstance(e, Const) and hasattr(e, "name")}
    by_name = sorted(letters, key=lambda e: str(getattr(e, "name", "")))
    tried = 0
    for _ in range(400):
        env = {
            e: int(rng.integers(2)) if e.dtype is DType.BOOL else int(rng.integers(-12, 13))
            for e in by_name
        }
        found = {e.name: env[e] if e.name in "cd" else e for e in by_name}
        if not row.when(**found):
            continue
        right = row.right(**found)
        assert value(row.left, env) == value(as_expr(right), env), env
        tried += 1
    assert tried > 0


@given(INTEGERS, ranges(), st.data())
def test_simplifying_keeps_the_value(
    e: Expr, known: dict[Var, tuple[int, int]], data: st.DataObject
) -> None:
    env = data.draw(points(known))
    assert value(simplify(e, known), env) == value(e, env)
    assert value(simplify(e), env) == value(e, env)


@examples(160)
@given(INTEGERS)
def test_what_is_computed_of_data_keeps_its_value_where_it_wraps_around(e: Expr) -> None:
    edges = [0, 1, -1, 5, -7, 12345, 2**40, 2**62, 2**63 - 1, -(2**62), -(2**63), 1 - 2**63]
    rng = np.random.default_rng(0)
    data = {placeholder((200,), "int64", name=v.name): rng.choice(edges, 200) for v in VARS}

    def of_data(*at: Expr) -> Expr:
        return substitute(e, {v: x[at] for v, x in zip(VARS, data, strict=True)})

    plain = compute((200,), of_data, name="plain")
    simple = compute((200,), lambda *at: simplify(of_data(*at)), name="simple")
    dag = ComputeDAG([plain, simple])
    want, got = run_dag(dag, {x: data[x] for x in dag.args})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "kept",
    [
        lambda x: x * 2654435761 % 1000,
        lambda x: x * 4 // 4,
        lambda x: (x * 6 + 4) // 4,
        lambda x: select(x + 1 > x, 1, 0),
        lambda x: minimum(x, x + 1),
    ],
)
def test_arithmetic_on_data_that_may_wrap_around_stays(kept: Callable[[Expr], Expr]) -> None:
    wide, narrow = (placeholder((8,), dtype, name="x")[i] for dtype in ("int64", "int32"))
    e, known_not_to = kept(wide), kept(narrow.astype("int64"))
    assert simplify(e) is e
    assert simplify(known_not_to) is not known_not_to


def test_numbers_keep_to_their_type() -> None:
    x = placeholder((8,), "int64", name="x")
    for e in (x[i] * 6364136223846793005 * 6364136223846793005, x[i] - 2**62 - 2**62, x[i] * 2**62):
        numbers = [c for c in walk(simplify(e)) if isinstance(c, Const)]
        assert all(c.type.holds(c.value) for c in numbers)
    most = Const(2**64 - 1, DType.UINT64).astype("int64")
    assert simplify(select(most < 0, i, j)) is i
    quotient = k // 2**40 // 2**40
    assert simplify(quotient) is quotient


@given(INTEGERS, ranges())
def test_simplifying_twice_changes_nothing(e: Expr, known: dict[Var, tuple[int, int]]) -> None:
    once = simplify(e, known)
    assert simplify(once, known) is once


def test_what_is_simple_is_returned_itself() -> None:
    x = placeholder((8, 8), name="x")
    for e in (i, const(3), i * 4 + j - 1, i // 4, x[i, j * 2 + 1] + 1.0, minimum(i, j), i * j):
        assert simplify(e) is e


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((i * 4 + j) // 4, i),
        ((i * 4 + j) % 4, j),
        ((i * 8 + j) // 4, i * 2),
        ((i * 4 + j + 4) // 8, (i + 1) // 2),
        ((k // 4) // 5, k // 20),
        ((k // 6) * 6 + k % 6, k),
        (k // 6 * 12 + k % 6 * 2 + 1, k * 2 + 1),
        (minimum(i, j + 100), i),
        (maximum(minimum(k, 3), 5), const(5)),
        (select((j < 4) & (k < 7), k, 0), select(k < 7, k, 0)),
        ((i + 1) * 3 - i * 3, const(3)),
        ((k * 4) % 12, k % 3 * 4),
        ((i * 4 + j) % 8, i % 2 * 4 + j),
    ],
)
def test_the_simplifier_knows(before: Expr, after: Expr) -> None:
    new = simplify(before, {i: (0, 9), j: (0, 3)})
    assert same_structure(new, after), new


def test_floats_keep_their_bits() -> None:
    x = placeholder((8,), name="x")
    for e in (x[i] - x[i], x[i] * 0.0, x[i] + 0.0, Call(Function.NOT, (x[i] < x[i + 1],))):
        assert simplify(e) is e


def test_a_known_condition_picks_the_float_side() -> None:
    x = placeholder((8,), name="x")
    assert simplify(select(i >= 0, x[i], 0.0), {i: (0, 7)}) is not None
    a = Axis("a", 8, AxisKind.SPACE)
    load = x[a]
    assert simplify(select((a >= 0) & (a < 8), load, 0.0)) is load


def test_a_condition_that_reads_stays_behind_the_one_that_keeps_it_inside() -> None:
    chosen, x = placeholder((5,), DType.BOOL, name="chosen"), placeholder((5,), name="x")
    read = select(i >= 1, select(chosen[i - 1], x[i - 1], 0.0), 0.0)
    assert simplify(read, {i: (0, 5)}) is read


def test_statements_are_simplified_under_their_loops() -> None:
    out = Buffer("out", (16,), DType.INT64, Scope.GLOBAL)
    store = Store(out, (i,), i + 0, None)
    loop = For(i, 16, ForKind.SERIAL, If(i < 16, store, None))
    new = simplify_stmt(loop)
    assert isinstance(new, For) and isinstance(new.body, Store) and new.body.value is i
    assert simplify_stmt(new) is new
    dropped = simplify_stmt(For(i, 4, ForKind.SERIAL, If(i >= 4, store, None)))
    assert isinstance(dropped, For) and isinstance(dropped.body, Seq) and not dropped.body.body


def test_a_power_by_squaring_is_simplified() -> None:
    e = i + 1
    for _ in range(40):
        e = e * e
    assert simplify(e) is e


def test_what_is_shared_is_simplified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0

    def counted(e: Expr) -> Linear:
        nonlocal visits
        visits += 1
        return linear(e)

    monkeypatch.setattr("ansorpy.ir.rewrite.simplify.linear", counted)
    monkeypatch.setattr("ansorpy.ir.analysis.interval.linear", counted)

    def visited(depth: int) -> int:
        nonlocal visits
        visits, e = 0, cast(Expr, i)
        for _ in range(depth):
            e = e // 3 * 7 + e % 3
        simplify(e, {i: (0, 10**6)})
        return visits

    assert visited(12) - visited(9) == visited(9) - visited(6)
