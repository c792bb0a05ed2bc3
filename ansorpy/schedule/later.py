"""Asynchronous instructions: the fences, commits and waits around them.

A group of them starts after a fence of the registers they add to.  The shared tiles they read
must be written before a fence of shared memory, which is followed by a barrier.
"""

from __future__ import annotations

from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import (
    CommitProducts,
    Fence,
    Instruction,
    Scope,
    Seq,
    Stmt,
    WaitProducts,
    walk_stmts,
)

__all__ = ["grouped", "made_visible", "runs_later"]


def runs_later(stmt: Stmt) -> bool:
    """True when *stmt* starts instructions that must be waited for."""
    return any(isinstance(s, Instruction) and intrinsic(s.name).later for s in walk_stmts(stmt))


def grouped(stmt: Stmt, pending: int) -> Stmt:
    """*stmt* with its instructions as a group, then a wait for all but *pending* groups."""
    if not runs_later(stmt):
        return stmt
    return Seq((Fence(Scope.WARP), stmt, CommitProducts(), WaitProducts(pending)))


def made_visible(use: Stmt) -> tuple[Stmt, ...]:
    """The statements before the barrier after which *use* reads tiles in shared memory."""
    return (Fence(Scope.SHARED),) if runs_later(use) else ()
