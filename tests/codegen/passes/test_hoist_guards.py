"""Guards outside of the loops on which they do not depend."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.passes.hoist_guards import hoist_guards
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Compare, CompareOp, Expr, Var, as_expr
from ansorpy.ir.extents import Extent, dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, ForKind, If, Program
from ansorpy.ir.rewrite.sizes import program_at
from ansorpy.ir.text.printer import text
from tests.codegen.programs import add_to, at, buffer, nest, program, put

N, M = dim("n", 0, 9), dim("m", 0, 11)


def below(a: Expr, extent: Extent) -> Expr:
    return Compare(CompareOp.LT, a, as_expr(extent))


def guarded(loops: str) -> Program:
    """Copies of a[k] under ``i < n and k < m``, for i of *loops* around k."""
    a, c = buffer("A", M), buffer("C", N, M)

    def body(i: Expr, k: Expr) -> If:
        return If(below(i, N) & below(k, M), put(c, (i, k), at(a, k)), None)

    return program(nest(loops, body), [a], [c])


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 0), (9, 11), (5, 7)])
def test_what_is_computed_stays(n: int, m: int) -> None:
    whole = guarded("s9 s11")
    here = dict(zip(whole.dims, (m, n), strict=True))
    assert [d.name for d in whole.dims] == ["m", "n"]
    a, c = np.arange(m, dtype=np.float32), np.full((n, m), np.nan, np.float32)
    run_program(program_at(hoist_guards(whole), here), [a, c])
    np.testing.assert_array_equal(c, np.tile(a, (n, 1)))


def test_each_conjunct_moves_by_itself() -> None:
    lines = text(hoist_guards(guarded("s9 u11"))).splitlines()[1:]
    assert [line.split("#")[0].strip() for line in lines] == [
        "for i0 in 0..9", "if i0 < n", "for i1 in 0..11", "if i1 < m", "C[i0, i1] = A[i1]",
    ]  # fmt: skip


def test_parallel_loops_stay_outermost() -> None:
    a, c = buffer("A", M), buffer("C", N)
    body = nest("p4 s3", lambda _, i: If(below(as_expr(3), N), add_to(c, (i,), at(a, i)), None))
    lines = text(hoist_guards(program(body, [a], [c]))).splitlines()
    assert lines[1].strip().startswith("for i0") and lines[2].strip() == "if 3 < n"


def test_loops_of_at_most_one_iteration_decide_nothing() -> None:
    c, once = buffer("C", N), Var("once")
    body = nest("s9", lambda i: If(below(once * 9 + i, N), put(c, (i,), as_expr(1.0)), None))
    whole = program(For(once, (N + 8) // 9, ForKind.SERIAL, body), [], [c])
    assert "if 0 * 9 + i0 < n" in text(hoist_guards(whole))


def test_conditions_on_data_stay() -> None:
    a, c = buffer("A", N, dtype=DType.INT64), buffer("C", N)
    body = nest("s4", lambda i: If(at(a, 0) < as_expr(0), add_to(c, (i,), as_expr(1.0)), None))
    whole = program(body, [a], [c])
    assert text(hoist_guards(whole)) == text(whole)


def test_programs_of_one_size_stay_the_same_object() -> None:
    a, c = buffer("A", 8), buffer("C", 8)
    body = nest("s4 s4", lambda i, k: If(i < 3, add_to(c, (i,), at(a, k)), None))
    whole = program(body, [a], [c])
    assert hoist_guards(whole) is whole
