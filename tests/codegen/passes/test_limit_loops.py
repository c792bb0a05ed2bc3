"""Loops without the iterations that a guard on sizes skips."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.codegen.passes.limit_loops import limit_loops
from ansorpy.ir.expr import Compare, CompareOp, Expr, as_expr
from ansorpy.ir.extents import dim
from ansorpy.ir.interpret import run_program
from ansorpy.ir.loops import For, If, Program, Seq, walk_stmts
from ansorpy.ir.rewrite.sizes import program_at
from tests.codegen.programs import at, buffer, nest, program, put

N = dim("n", 0, 80)


def guarded(loops: str, op: CompareOp, step: int, offset: int = 0) -> Program:
    """``C[i] = A[i]`` where ``i * step + offset`` is below *n*, or at most *n*; -1 elsewhere."""
    a, m, c = buffer("A", 12), buffer("M", N), buffer("C", 12)

    def body(i: Expr) -> If:
        cond = Compare(op, i * step + offset, as_expr(N))
        return If(cond, put(c, (i,), at(a, i)), None)

    filled = nest("s12", lambda i: put(c, (i,), as_expr(-1.0)))
    return program(Seq((filled, nest(loops, body))), [a, m], [c])


def extent(whole: Program) -> str:
    _, loop = (s for s in walk_stmts(whole.body) if isinstance(s, For))
    return str(loop.extent)


@pytest.mark.parametrize("loops", ["s12", "p12"])
@pytest.mark.parametrize("op", [CompareOp.LT, CompareOp.LE])
@pytest.mark.parametrize(("step", "offset"), [(8, 0), (7, 3), (1, 0), (5, -4)])
def test_what_is_computed_stays(loops: str, op: CompareOp, step: int, offset: int) -> None:
    whole = guarded(loops, op, step, offset)
    limited = limit_loops(whole)
    assert not any(isinstance(s, If) for s in walk_stmts(limited.body))
    for n in (0, 1, 7, 8, 9, 40, 79, 80):
        want, found = np.zeros(12, np.float32), np.zeros(12, np.float32)
        for one, c in ((whole, want), (limited, found)):
            a, sized = np.arange(12, dtype=np.float32), np.zeros(n, np.float32)
            run_program(program_at(one, dict.fromkeys(one.dims, n)), [a, sized, c])
        np.testing.assert_array_equal(found, want)


def test_the_extent_is_that_of_the_guard() -> None:
    assert extent(limit_loops(guarded("s12", CompareOp.LT, 8))) == "(n + 7)//8"
    assert extent(limit_loops(guarded("s12", CompareOp.LE, 4))) == "min(12, n//4 + 1)"


def test_other_loops_stay() -> None:
    down, unrolled = guarded("s12", CompareOp.LT, -8), guarded("u12", CompareOp.LT, 8)
    assert extent(limit_loops(down)) == extent(limit_loops(unrolled)) == "12"
