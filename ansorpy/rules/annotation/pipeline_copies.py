"""Copy shared tiles ahead of the iterations that use them."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.kernels import tile_host
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["PipelineCopies"]

FIRST_WITH_COPIES = 80
"""The first architecture with asynchronous copies to shared memory (PTX ISA, ``cp.async``)."""


@dataclass(frozen=True)
class PipelineCopies(AnnotationRule):
    """Fuse the loops around shared tiles into one, and open the number of tiles in flight.

        for rc.0, ry.0, rx.0:           for rc.0@ry.0@rx.0@:
          tile = X[...]           -->     wait; start the copy of a later tile
          C += tile[...]                  C += tile[...]

    A depth of 1 fills each tile right before it is read.
    Differs: Ansor has no such annotation; its kernels wait for every tile.
    """

    depths: tuple[int, ...] = (1, 2, 3, 4)

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in space.state.stages:
            host = tile_host(state, stage)
            if host is None:
                continue
            state, fused = _as_one(state, stage, host)
            if target.capability >= FIRST_WITH_COPIES:
                state = state.pipeline(stage.name, fused, OneOf(self.depths))
        return Space(state, space.constraints)


def _as_one(state: State, stage: Stage, host: str) -> tuple[State, str]:
    """*state* with the plain reduce loops down to *host* fused, and the fused loop."""
    outer = []
    for it in reversed(stage.iters[: stage.index(host) + 1]):
        if it.kind is not AxisKind.REDUCE or it.annotation is not ForKind.SERIAL:
            break
        outer.append(it)
    state, fused = state.fuse(stage.name, outer[::-1])
    return state, fused.name
