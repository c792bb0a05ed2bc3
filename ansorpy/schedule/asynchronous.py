"""Asynchronous instructions: the fences, commits and waits around them.

A group of them starts after a fence of the registers they add to.  The shared tiles they read
must be written before a fence of shared memory, which is followed by a barrier.
"""

from __future__ import annotations

from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import (
    Async,
    Commit,
    Fence,
    Instruction,
    Scope,
    Seq,
    Stmt,
    Wait,
    walk_stmts,
)

__all__ = ["grouped", "made_visible", "runs_asynchronously"]


def runs_asynchronously(stmt: Stmt) -> bool:
    """True when *stmt* starts instructions that must be waited for."""
    return any(
        isinstance(s, Instruction) and intrinsic(s.name).asynchronous for s in walk_stmts(stmt)
    )


def grouped(stmt: Stmt, pending: int) -> Stmt:
    """*stmt* with its instructions as a group, then a wait for all but *pending* groups."""
    if not runs_asynchronously(stmt):
        return stmt
    return Seq((Fence(Scope.WARP), stmt, Commit(Async.PRODUCTS), Wait(Async.PRODUCTS, pending)))


def made_visible(use: Stmt) -> tuple[Stmt, ...]:
    """The statements before the barrier after which *use* reads tiles in shared memory."""
    return (Fence(Scope.SHARED),) if runs_asynchronously(use) else ()
