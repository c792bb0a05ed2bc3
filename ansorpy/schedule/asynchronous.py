"""Asynchronous instructions: the fences, commits and waits around them.

A group of instructions starts after a fence of the registers to which they add.  The shared tiles
they read must be written before a fence of shared memory, which is followed by a barrier.
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

__all__ = ["begun", "grouped", "made_visible", "runs_asynchronously"]


def runs_asynchronously(stmt: Stmt) -> bool:
    """Whether *stmt* starts instructions that must be waited for."""
    return any(
        isinstance(s, Instruction) and intrinsic(s.name).asynchronous for s in walk_stmts(stmt)
    )


def grouped(stmt: Stmt, pending: int) -> Stmt:
    """*stmt* with its instructions as one group, then a wait for all but *pending* groups."""
    if not runs_asynchronously(stmt):
        return stmt
    return Seq((begun(stmt), Wait(Async.PRODUCTS, pending)))


def begun(stmt: Stmt) -> Stmt:
    """*stmt* with its instructions as one group, which is not waited for."""
    return Seq((Fence(Scope.WARP), stmt, Commit(Async.PRODUCTS)))


def made_visible(use: Stmt) -> tuple[Stmt, ...]:
    """The statements needed before the barrier after which *use* reads tiles in shared memory."""
    return (Fence(Scope.SHARED),) if runs_asynchronously(use) else ()
