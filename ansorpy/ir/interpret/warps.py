"""Execution of instructions that the lanes of a warp or warpgroup perform together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ansorpy.errors import LoweringError
from ansorpy.ir.interpret.lanes import Lanes
from ansorpy.ir.interpret.numerics import Value
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import Instruction

__all__ = ["one_a_team"]


def one_a_team(stmt: Instruction, lanes: Lanes, places: Iterable[Value]) -> Lanes:
    """Select the first lane of each team that runs *stmt*, to represent the team.

    *places* are the indices of its operands.

    Raises:
        LoweringError: It runs outside a kernel, not all lanes of a team are here, or their
            operands differ.
    """
    if lanes.launch is None:
        raise LoweringError(f"{stmt.name} outside of a kernel launch")
    size = intrinsic(stmt.name).team
    thread = lanes.spread(lanes.thread)
    teams, counts = np.unique(lanes.spread(lanes.team(size)), return_counts=True)
    if (counts != size).any() or len(np.unique(thread)) < len(thread):
        raise LoweringError(
            f"only {int(counts.min())} of {size} threads of a warp reach {stmt.name}",
            hint="move the instruction out of the condition",
        )
    order = np.argsort(thread, kind="stable").reshape(len(teams), size)
    for place in places:
        wanted = lanes.spread(place)[order]
        if (wanted != wanted[:, :1]).any():
            raise LoweringError(f"the lanes of a warp have different operands of {stmt.name}")
    chosen = np.zeros(lanes.count, dtype=np.bool_)
    chosen[order[:, 0]] = True
    return lanes.select(chosen)
