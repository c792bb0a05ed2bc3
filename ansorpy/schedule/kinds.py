"""Kinds of loops whose iterations share memory."""

from __future__ import annotations

from ansorpy.ir.loops import THREAD_INDICES, ForKind, Scope
from ansorpy.schedule.stage import Stage

__all__ = ["ALONE", "BLOCK_THREADS", "LANES", "Kinds", "shared_by"]

Kinds = frozenset[ForKind]

BLOCK_THREADS: Kinds = frozenset({*THREAD_INDICES, ForKind.VTHREAD})
"""Loops whose iterations share the shared memory of one GPU block."""

LANES: Kinds = frozenset({ForKind.THREAD_X, ForKind.THREAD_Y})
"""Loops whose iterations are the lanes of a warp, in kernels with tiles in its registers."""

ALONE: Kinds = frozenset()


def shared_by(stage: Stage) -> Kinds:
    """Kinds of the loops around *stage* whose iterations fill and read its memory together."""
    if stage.scope is Scope.WARP:
        return LANES
    return BLOCK_THREADS if stage.scope is Scope.SHARED else ALONE
