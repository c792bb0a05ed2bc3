"""Instructions that are done later: what stands around them, and what they read before.

A group of them starts after a fence of the registers they add to.  The shared tiles they read are
written before a fence of shared memory, and that before a barrier.
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
    """*stmt*, its instructions a group, after which all but the last *pending* ones are done."""
    if not runs_later(stmt):
        return stmt
    return Seq((Fence(Scope.WARP), stmt, CommitProducts(), WaitProducts(pending)))


def made_visible(use: Stmt) -> tuple[Stmt, ...]:
    """What stands before the barrier after which *use* reads tiles in shared memory."""
    return (Fence(Scope.SHARED),) if runs_later(use) else ()
