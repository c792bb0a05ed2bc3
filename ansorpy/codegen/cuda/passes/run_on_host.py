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
    If,
    Let,
    Program,
    Scope,
    Seq,
    Shuffle,
    Stmt,
    Wait,
    walk_stmts,
)

__all__ = ["for_host"]

_TOGETHER = (
    Barrier, Shuffle, AsyncCopy, Commit, Wait, Fence,
)  # fmt: skip


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
    match s:
        case For(var, extent, kind, body):
            if kind not in LAUNCH_INDICES:
                return For(var, extent, kind, _serial(body, bound))
            if kind in bound:
                raise CodegenError(f"constants are computed in two loops over {kind.value}")
            return For(var, extent, ForKind.SERIAL, _serial(body, bound | {kind}))
        case Seq(body):
            return Seq(tuple(_serial(part, bound) for part in body))
        case Let(var, value, body):
            return Let(var, value, _serial(body, bound))
        case Alloc(buffer, body):
            return Alloc(buffer, _serial(body, bound))
        case If(cond, then, other):
            return If(cond, _serial(then, bound), None if other is None else _serial(other, bound))
        case _:
            return s
