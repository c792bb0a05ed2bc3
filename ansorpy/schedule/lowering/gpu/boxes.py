"""Tiles that the first thread of a block has copied as boxes of their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.ir.expr import Var
from ansorpy.ir.loops import (
    THREAD_INDICES,
    Async,
    AsyncCopy,
    Commit,
    For,
    ForKind,
    Seq,
    Stmt,
    Store,
    Wait,
)

__all__ = ["copied_box", "is_box_copy", "waited_for"]


def copied_box(
    loops: Sequence[tuple[Var, int]], store: Store, blocks: int, fresh: Callable[[str], Var]
) -> Stmt:
    """*store* in all iterations of *loops*, as one copy by the first thread of a block.

    Up to *blocks* neighbours may share it; *fresh* makes variables.
    """
    stmt: Stmt = AsyncCopy(store.buffer, store.indices, store.value, blocks)
    for var, extent in reversed(loops):
        stmt = For(var, extent, ForKind.BULK, stmt)
    for kind in THREAD_INDICES:
        stmt = For(fresh("thread"), 1, kind, stmt)
    return stmt


def is_box_copy(fill: Stmt) -> bool:
    """Whether *fill* is what :func:`copied_box` made."""
    while isinstance(fill, For):
        fill = fill.body
    return isinstance(fill, AsyncCopy)


def waited_for(fill: Stmt) -> Stmt:
    """*fill*, followed by a wait for it if it is a copy of a box."""
    if not is_box_copy(fill):
        return fill
    return Seq((fill, Commit(Async.COPIES), Wait(Async.COPIES, 0)))
