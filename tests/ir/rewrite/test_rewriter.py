from __future__ import annotations

import pytest
from hypothesis import given

from ansorpy.ir.builders import select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, Load, Var, const, walk
from ansorpy.ir.loops import (
    Alloc,
    Barrier,
    Buffer,
    For,
    ForKind,
    If,
    Instruction,
    Let,
    Prefetch,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Store,
    substatements,
)
from ansorpy.ir.rewrite.rewriter import Rewriter, map_children, map_statements, substitute
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from tests.ir.scalar import INTEGERS

i, j = Var("i"), Var("j")
OUT = Buffer("out", (4, 4), DType.FLOAT32, Scope.GLOBAL)
TMP = Buffer("tmp", (4,), DType.FLOAT32, Scope.LOCAL)


def every_statement() -> Stmt:
    """A program with each kind of statement in it."""
    store = Store(TMP, (i,), Load(OUT, (i, j)) * 2.0, None)
    body = Seq((
        If(i < 3, store, Store(TMP, (i,), const(0.0, DType.FLOAT32), None)),
        Barrier(Scope.SHARED),
        Prefetch(OUT, i * 4 + j),
        Instruction("copy", ((OUT, (i, j)), (TMP, (i,)))),
        Shuffle(TMP, (i,), Load(TMP, (j,)), 16),
    ))  # fmt: skip
    return For(i, 4, ForKind.SERIAL, Let(j, i % 4, Alloc(TMP, body)))


@given(INTEGERS)
def test_rewriting_nothing_returns_the_same_expression(e: Expr) -> None:
    assert Rewriter().expr(e) is e
    assert substitute(e, {}) is e
    assert map_children(e, lambda x: x) is e


def test_rewriting_nothing_returns_the_same_statement() -> None:
    program = every_statement()
    assert Rewriter().stmt(program) is program
    assert substitute(program, {Var("unused"): i}) is program


def test_every_kind_of_expression_is_rebuilt_around_a_change() -> None:
    x = placeholder((4,), name="x")
    k = reduce_axis(4, name="k")
    op = compute((4,), lambda a: sum_over(select(a < k, x[k].astype("float64"), 1.0), k), name="y")
    new = substitute(op.body, {k: op.axes[0]})
    assert new is not op.body
    assert k not in list(walk(new)) and op.axes[0] in list(walk(new))


def test_substitution_is_simultaneous_and_shares_what_it_does_not_touch() -> None:
    kept = j * 7
    new = substitute(kept + i, {i: const(1)})
    assert new.a is kept and isinstance(new.b, Const)  # type: ignore[attr-defined]


def test_buffers_are_replaced_everywhere() -> None:
    class Rename(Rewriter):
        def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
            return new if source is TMP else source

    new = Buffer("new", (4,), DType.FLOAT32, Scope.WORKSPACE)
    text = str(Rename().stmt(every_statement()))
    assert "tmp" not in text and "new" in text and "out" in text


def test_a_statement_cannot_write_a_tensor() -> None:
    class Wrong(Rewriter):
        def source(self, source: Tensor | Buffer) -> Tensor | Buffer:
            return placeholder((4,), name="x")

    with pytest.raises(TypeError, match="a statement needs a buffer to replace out"):
        Wrong().stmt(Store(OUT, (i, j), const(0.0, DType.FLOAT32), None))


def test_statements_are_mapped_one_level_down() -> None:
    buffer = Buffer("B", (4,), DType.FLOAT32, Scope.LOCAL)
    one, two = (Store(buffer, (i,), const(float(n), DType.FLOAT32), None) for n in (1, 2))
    inner = If(i < 2, one, two)
    for outer in (
        Seq((one, inner)), For(i, 4, ForKind.SERIAL, one), If(i < 2, one, None), inner,
        Let(i, const(1), one), Alloc(buffer, one),
    ):  # fmt: skip
        assert map_statements(outer, lambda s: s) is outer
        seen: list[Stmt] = []

        def exchanged(s: Stmt, seen: list[Stmt] = seen) -> Stmt:
            seen.append(s)
            return two if s is one else s

        new = map_statements(outer, exchanged)
        assert type(new) is type(outer) and tuple(seen) == substatements(outer)
        assert substatements(new) == tuple(two if s is one else s for s in substatements(outer))
    assert map_statements(one, lambda s: two) is one
