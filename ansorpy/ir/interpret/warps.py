"""What the lanes of a warp do together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ansorpy.errors import LoweringError
from ansorpy.ir.fragments import WARP
from ansorpy.ir.interpret.lanes import Lanes
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.loops import Instruction

__all__ = ["one_a_warp"]


def one_a_warp(stmt: Instruction, lanes: Lanes, places: Iterable[Value]) -> Lanes:
    """The first lane of each warp that runs *stmt*, in its place.

    *places* are the indices of its operands.

    Raises:
        LoweringError: It runs outside of a kernel, not all lanes of a warp are here, or they
            differ in what they want of it.
    """
    if lanes.launch is None:
        raise LoweringError(f"{stmt.name} outside of a kernel launch")
    thread = lanes.spread(lanes.thread)
    warps, counts = np.unique(lanes.spread(lanes.warp), return_counts=True)
    if (counts != WARP).any() or len(np.unique(thread)) < len(thread):
        raise LoweringError(
            f"only {int(counts.min())} of {WARP} threads of a warp reach {stmt.name}",
            hint="take the instruction out of the condition",
        )
    order = np.argsort(thread, kind="stable").reshape(len(warps), WARP)
    for place in places:
        wanted = lanes.spread(place)[order]
        if (wanted != wanted[:, :1]).any():
            raise LoweringError(f"the lanes of a warp want different operands of {stmt.name}")
    chosen = np.zeros(lanes.count, dtype=np.bool_)
    chosen[order[:, 0]] = True
    return lanes.select(chosen)
