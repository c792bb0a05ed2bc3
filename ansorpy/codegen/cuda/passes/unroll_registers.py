"""Unroll loops that index thread-local buffers: registers cannot be indexed at run time."""

from __future__ import annotations

from ansorpy.codegen.accesses import accesses, free_vars
from ansorpy.ir.expr import Var
from ansorpy.ir.loops import (
    For,
    ForKind,
    Let,
    Program,
    Scope,
    Stmt,
    substatements,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

__all__ = ["MOST_STATEMENTS", "unroll_registers", "written_out"]

MOST_STATEMENTS = 4096
"""Maximum statements per unrolled kernel: at 16 bytes per instruction, they fill half an SM's
instruction cache.  The assembler takes 50 s for 4,900 multiply-adds with 112 accumulators (NVRTC
13.5)."""


def unroll_registers(program: Program, target: Target) -> Program:
    """Unroll each serial loop of *program* that indexes a buffer in registers::

        for j in 0..4                        for j in 0..4  # unrolled
          C[x * 4 + j] = acc[j]      -->       C[x * 4 + j] = acc[j]

    A buffer larger than a thread's registers stays in memory and its loops are kept.  Loops that
    would unroll to more than ``MOST_STATEMENTS``, or whose extents depend on the call, are kept as
    well.
    """
    variables = _indexing(program.body, target.vector_registers * 4)
    return program.with_body(_Unrolled(variables).stmt(program.body))


class _Unrolled(Rewriter):
    def __init__(self, variables: set[Var]):
        super().__init__()
        self.variables = variables

    def stmt(self, s: Stmt) -> Stmt:
        new = super().stmt(s)
        if not isinstance(new, For) or new.kind is not ForKind.SERIAL:
            return new
        if not isinstance(new.extent, int):
            return new
        indexes, size = new.var in self.variables, new.extent * written_out(new.body)
        if indexes and size <= MOST_STATEMENTS:
            return For(new.var, new.extent, ForKind.UNROLLED, new.body)
        return new


def written_out(s: Stmt) -> int:
    """Number of statements of *s* after unrolling."""
    inner = sum(written_out(part) for part in substatements(s))
    if isinstance(s, For) and s.kind in (ForKind.UNROLLED, ForKind.VECTORIZED):
        return s.extent * inner
    return inner or 1


def _indexing(body: Stmt, most_bytes: int) -> set[Var]:
    """Variables in the indices of local buffers of at most *most_bytes*."""
    found: set[Var] = set()
    for s in walk_stmts(body):
        for buffer, indices in accesses(s):
            if buffer.scope is Scope.LOCAL and fixed(buffer.bytes) <= most_bytes:
                found |= free_vars(*indices)
    lets = [s for s in walk_stmts(body) if isinstance(s, Let)]
    for let in reversed(lets):
        if let.var in found:
            found |= free_vars(let.value)
    return found
