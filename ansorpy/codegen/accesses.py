"""What statements and expressions use: elements of buffers, and variables."""

from __future__ import annotations

from collections.abc import Iterator

from ansorpy.ir.expr import Expr, Load, Var, walk
from ansorpy.ir.loops import (
    AsyncCopy,
    Buffer,
    Instruction,
    Shuffle,
    Stmt,
    Store,
    expressions,
    walk_stmts,
)

__all__ = ["accesses", "buffers_read", "buffers_used", "free_vars", "reads"]

Access = tuple[Buffer, tuple[Expr, ...]]
"""A buffer and the indices of an element; of an operand of an instruction, its first element."""


def free_vars(*exprs: Expr) -> set[Var]:
    """The variables in *exprs*."""
    return {e for expr in exprs for e in walk(expr) if isinstance(e, Var)}


def reads(s: Stmt) -> Iterator[Access]:
    """What the expressions of *s* itself read, without those of the statements in it."""
    for root in expressions(s):
        for e in walk(root):
            if isinstance(e, Load) and isinstance(e.source, Buffer):
                yield e.source, e.indices


def accesses(s: Stmt) -> Iterator[Access]:
    """What *s* itself reads and then writes, without the statements in it."""
    yield from reads(s)
    if isinstance(s, Store | Shuffle | AsyncCopy):
        yield s.buffer, s.indices
    elif isinstance(s, Instruction):
        yield from s.operands


def buffers_used(stmt: Stmt) -> dict[Buffer, bool]:
    """Every buffer accessed anywhere in *stmt*, in order, mapped to whether it is written."""
    used: dict[Buffer, bool] = {}
    for inner in walk_stmts(stmt):
        for buffer, _ in accesses(inner):
            used.setdefault(buffer, False)
        if isinstance(inner, Store | Shuffle | AsyncCopy):
            used[inner.buffer] = True
        elif isinstance(inner, Instruction):
            used[inner.operands[0][0]] = True
    return used


def buffers_read(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers that some expression in *stmt* reads."""
    return frozenset(buffer for inner in walk_stmts(stmt) for buffer, _ in reads(inner))
