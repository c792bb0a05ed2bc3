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
    substatements,
    walk_stmts,
)

__all__ = ["begun", "grouped", "leaves_running", "made_visible"]


def leaves_running(stmt: Stmt) -> bool:
    """Whether *stmt* starts instructions that it does not itself wait for."""
    running = _is_asynchronous(stmt)
    for s in substatements(stmt):
        done = isinstance(s, Wait) and s.kind is Async.PRODUCTS and not s.pending
        running = not done and (running or leaves_running(s))
    return running


def _is_asynchronous(s: Stmt) -> bool:
    return isinstance(s, Instruction) and intrinsic(s.name).asynchronous


def grouped(stmt: Stmt, pending: int) -> Stmt:
    """*stmt* with its instructions as one group, then a wait for all but *pending* groups.

    Instructions that *stmt* waits for are groups already.
    """
    if not leaves_running(stmt):
        return stmt
    return Seq((begun(stmt), Wait(Async.PRODUCTS, pending)))


def begun(stmt: Stmt) -> Stmt:
    """*stmt* with its instructions as one group, which is not waited for."""
    return Seq((Fence(Scope.WARP), stmt, Commit(Async.PRODUCTS)))


def made_visible(use: Stmt) -> tuple[Stmt, ...]:
    """The statements needed before the barrier after which *use* reads tiles in shared memory."""
    return (Fence(Scope.SHARED),) if any(map(_is_asynchronous, walk_stmts(use))) else ()
