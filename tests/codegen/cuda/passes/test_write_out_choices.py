"""Loops that choose between formulas are written out, and what these read is loaded once."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.cuda.passes.write_out_choices import written_choices
from ansorpy.ir.builders import select
from ansorpy.ir.expr import Compare, CompareOp, Expr, Load, Select, Var, as_expr, walk
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, ForKind, Program, Store, expressions, walk_stmts
from tests.codegen.programs import ZERO, at, buffer, program, put

p, c, t = Var("p"), Var("c"), Var("t")
X, OUT = buffer("x", 6, 32), buffer("out", 4, 32)


def formulas(number: Expr, *, of: Expr | None = None) -> Expr:
    """One of four combinations of rows of X, each there only for the first lanes."""
    row = p if of is None else of

    def element(k: int) -> Expr:
        return select(c < 20 + k, at(X, k, c), ZERO)

    found = element(5) - element(4)
    for n in range(3):
        found = select(row.equal(n), element(n) + element(n + 2) * 2.0, found)
    return found + number * 0.0


def transform(value: Expr, kind: ForKind = ForKind.UNROLLED) -> Program:
    inner = For(p, 4, kind, put(OUT, (p, c), value))
    nest = For(Var("block"), 1, ForKind.BLOCK_X, For(c, 32, ForKind.THREAD_X, inner))
    return program(nest, [X], [OUT])


def results(source: Program, rng: np.random.Generator) -> np.ndarray:
    data = [rng.standard_normal(q.buffer.shape).astype(np.float32) for q in source.params]
    run_program(source, data)
    return data[-1]


def loads(source: Program) -> int:
    """Places that load from X."""
    nodes = {e for s in walk_stmts(source.body) for root in expressions(s) for e in walk(root)}
    return sum(isinstance(e, Load) and e.source is X for e in nodes)


def choices(source: Program) -> int:
    """Choices by an equality."""
    nodes = {e for s in walk_stmts(source.body) for root in expressions(s) for e in walk(root)}
    return sum(
        isinstance(e, Select) and isinstance(e.cond, Compare) and e.cond.op is CompareOp.EQ
        for e in nodes
    )  # fmt: skip


def test_every_formula_is_written_once_and_every_element_loaded_once() -> None:
    source = transform(formulas(ZERO))
    found = written_choices(source)
    stores = [s for s in walk_stmts(found.body) if isinstance(s, Store)]
    assert [s.buffer.name for s in stores] == ["x.once"] * 2 + ["out"] * 4
    assert not any(isinstance(s, For) and s.var is p for s in walk_stmts(found.body))
    assert loads(found) == 6  # rows 2 and 4 are in two formulas each
    want = results(source, np.random.default_rng(3))
    np.testing.assert_array_equal(results(found, np.random.default_rng(3)), want)


def test_choices_by_a_remainder_are_decided_too() -> None:
    source = transform(formulas(ZERO, of=(t * 4 + p) % 4))
    source = program(For(t, 2, ForKind.SERIAL, source.body), [X], [OUT])
    found = written_choices(source)
    assert choices(source) == 3 and choices(found) == 0
    want = results(source, np.random.default_rng(4))
    np.testing.assert_array_equal(results(found, np.random.default_rng(4)), want)


@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.VECTORIZED])
def test_other_loops_stay(kind: ForKind) -> None:
    source = transform(formulas(ZERO), kind)
    assert written_choices(source) is source
    plain = transform(at(X, p, c))
    assert written_choices(plain) is plain


def test_what_the_statements_write_is_read_in_its_place() -> None:
    first = select(c < 20, at(OUT, 0, c), ZERO)
    value = select(p.equal(0), at(X, 0, c), first + at(X, p, c))
    source = transform(value)
    found = written_choices(source)
    assert "once" not in {s.buffer.name for s in walk_stmts(found.body) if isinstance(s, Store)}
    want = results(source, np.random.default_rng(5))
    np.testing.assert_array_equal(results(found, np.random.default_rng(5)), want)


@pytest.mark.parametrize("where", ["condition", "index"])
def test_what_depends_on_what_the_statements_write_is_read_in_its_place(where: str) -> None:
    first = at(OUT, 0, c)
    if where == "condition":
        guarded = select(first > 0.0, at(X, 5, c), ZERO)
    else:
        guarded = select(c < 20, at(X, select(first > 0.0, as_expr(5), as_expr(4)), c), ZERO)
    source = transform(select(p.equal(0), at(X, 0, c), guarded + at(X, p, c)))
    found = written_choices(source)
    want = results(source, np.random.default_rng(6))
    np.testing.assert_array_equal(results(found, np.random.default_rng(6)), want)
