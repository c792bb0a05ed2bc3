"""Partially unroll reduction loops, so that a straight-line body has several reduction steps.

::

    for k in 0..64                        for k.outer in 0..16
      C[i, j] += A[i, k] * B[k, j]  -->     for k.inner in 0..4  # unrolled
                                              C[i, j] += A[i, k.outer * 4 + k.inner] * ...

Within a body, the assembler can load operands ahead of the products that need them, and can load
neighbours along the reduction together.
"""

from __future__ import annotations

from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.cuda.passes.unroll_registers import MOST_STATEMENTS, written_out
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import (
    For,
    ForKind,
    If,
    Let,
    Program,
    Scope,
    Seq,
    Stmt,
    Store,
    substatements,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter, substitute

__all__ = ["MOST_PRODUCTS", "MOST_STEPS", "longest_bodies", "steps_at_once"]

MOST_PRODUCTS = 1024
"""Maximum products per body: with loads about 20 KiB, which the instruction cache can stream."""
MOST_STEPS = 32
"""Maximum reduction steps per body."""


def longest_bodies(program: Program) -> Program:
    """Unroll serial loops that only accumulate, innermost first, fully or in part.

    Loops whose extents depend on the call stay loops.
    A program that would exceed ``MOST_STATEMENTS`` is returned unchanged.
    """
    body = _Longer().stmt(program.body)
    return program if written_out(body) > MOST_STATEMENTS else program.with_body(body)


def steps_at_once(extent: int, most: int) -> int:
    """The largest divisor of *extent* that is at most *most*."""
    return next(n for n in range(min(extent, max(most, 1)), 0, -1) if extent % n == 0)


class _Longer(Rewriter):
    def stmt(self, s: Stmt) -> Stmt:
        new = super().stmt(s)
        if not isinstance(new, For) or new.kind is not ForKind.SERIAL or not _only_sums(new.body):
            return new
        if not isinstance(new.extent, int):
            return new
        most = min(MOST_PRODUCTS // written_out(new.body), MOST_STEPS // _steps(new.body))
        at_once = steps_at_once(new.extent, most)
        if at_once == new.extent:
            return For(new.var, new.extent, ForKind.UNROLLED, new.body)
        if at_once == 1:
            return new
        outer, inner = Var(f"{new.var.name}.outer"), Var(f"{new.var.name}.inner")
        body = substitute(new.body, {new.var: outer * at_once + inner})
        body = For(inner, at_once, ForKind.UNROLLED, body)
        return For(outer, new.extent // at_once, ForKind.SERIAL, body)


def _only_sums(s: Stmt) -> bool:
    """Return whether *s* is straight-line code that only adds to the thread's local buffers."""
    match s:
        case Store(buffer, _, _, reduce):
            return reduce is not None and buffer.scope is Scope.LOCAL
        case For(_, _, kind, _) if kind not in (ForKind.UNROLLED, ForKind.VECTORIZED):
            return False
        case For() | If() | Let() | Seq():
            return all(_only_sums(part) for part in substatements(s))
        case _:
            return False


def _steps(s: Stmt) -> int:
    """Number of reduction steps in straight-line code: iterations that add to the same elements."""
    inner = max((_steps(part) for part in substatements(s)), default=1)
    return s.extent * inner if isinstance(s, For) and not _indexes(s) else inner


def _indexes(loop: For) -> bool:
    stores = [s for s in walk_stmts(loop.body) if isinstance(s, Store)]
    return any(loop.var in free_vars(*s.indices) for s in stores)
