"""Keeping the innermost space tile of a reduction in vector registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.relations import host_iters, is_input, is_tiled
from ansorpy.schedule.bounds import Bounds
from ansorpy.schedule.size import Size, above, ceil_div, product
from ansorpy.schedule.space import Constraint, Space
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["RegisterTile"]


@dataclass(frozen=True)
class RegisterTile(AnnotationRule):
    """Unroll the space loops inside all reduce loops; refuse tiles that registers cannot hold.

    The innermost loop is left to AnnotateVectorize.  ``spare`` registers remain for operands.
    Differs: TVM leaves both to LLVM, with unrolling as a random choice.  Our generator promotes
    exactly this tile, so an unrolled tile that fits is never worse, and a larger one spills.
    """

    spare: int = 4
    narrowest_bits: int = 32

    def declare(self, space: Space, target: Target) -> Space:
        state, constraints = space.state, list(space.constraints)
        for stage in space.state.stages:
            tile = () if is_input(state, stage) or stage.inlined else _inner_tile(state, stage)
            if not tile:
                continue
            for it in tile[:-1]:
                state = state.unroll(stage.name, it)
            constraints.append(self._fits(space.state, stage, tile, target))
        return Space(state, tuple(constraints))

    def _fits(
        self, state: State, stage: Stage, tile: Sequence[Iter], target: Target
    ) -> Constraint:
        lanes = target.lanes(max(self.narrowest_bits, stage.op.dtype.bits))
        most = target.vector_registers - self.spare

        def holds(values: Mapping[str, Size]) -> Size:
            extents = Bounds(state, values).extents(stage.name)
            rows = product(extents[it.name] for it in tile[:-1])
            return 1 - above(rows * ceil_div(extents[tile[-1].name], lanes), most)

        return Constraint(f"{stage.name}.registers", holds)


def _inner_tile(state: State, stage: Stage) -> tuple[Iter, ...]:
    """The plain space loops inside the last reduce loop of a tiled reduction."""
    if not is_tiled(stage):
        return ()
    hosts = host_iters(state, stage)
    tile: list[Iter] = []
    for it in reversed(stage.iters):
        if it.kind is AxisKind.REDUCE:
            return tuple(reversed(tile))
        if it.annotation is not ForKind.SERIAL or it.name in hosts:
            break
        tile.append(it)
    return ()
