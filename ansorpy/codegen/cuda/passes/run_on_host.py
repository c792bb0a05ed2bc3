"""Convert a program scheduled for a GPU to run on the CPU, which packs constants.

for i: # blockIdx.x                for i:
  for j: # threadIdx.x     -->       for j:
    U[i, j] = ...                      U[i, j] = ...
"""

from __future__ import annotations

from ansorpy.errors import CodegenError
from ansorpy.ir.loops import (
    LAUNCH_INDICES,
    Alloc,
    AsyncCopy,
    Barrier,
    Commit,
    Fence,
    For,
    ForKind,
    Program,
    Scope,
    Shuffle,
    Stmt,
    Wait,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import map_statements

__all__ = ["for_host"]

_TOGETHER = (Barrier, Shuffle, AsyncCopy, Commit, Wait, Fence)


def for_host(program: Program) -> Program:
    """Make the loops of *program* over blocks and threads serial.

    Raises:
        CodegenError: Its threads cooperate: they wait for each other, or share memory.
    """
    for s in walk_stmts(program.body):
        shares = isinstance(s, Alloc) and s.buffer.scope in (Scope.SHARED, Scope.WARP)
        if shares or isinstance(s, _TOGETHER):
            raise CodegenError(
                f"{program.name} computes constants with threads that cooperate",
                hint="compute these values beforehand, or do not declare their inputs constant",
            )
    return program.with_body(_serial(program.body, frozenset()))


def _serial(s: Stmt, bound: frozenset[ForKind]) -> Stmt:
    """*s* with serial loops instead of those over blocks and threads; *bound* are those around."""
    if not isinstance(s, For) or s.kind not in LAUNCH_INDICES:
        return map_statements(s, lambda part: _serial(part, bound))
    if s.kind in bound:
        raise CodegenError(f"constants are computed in two loops over {s.kind.value}")
    return For(s.var, s.extent, ForKind.SERIAL, _serial(s.body, bound | {s.kind}))
