"""Pad tiles in shared memory to avoid bank conflicts."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.loops import Scope
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.gpu.wide_copies import copy_width
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Constraint, Space
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.tables.size import Size, at_most, size_gcd
from ansorpy.target import Target

__all__ = ["PadTiles"]


@dataclass(frozen=True)
class PadTiles(AnnotationRule):
    """Open the number of padding elements after each row of a shared tile.

    Threads that read a column of a tile all hit one bank if the row length is a multiple of the
    banks; a few elements between rows avoid that.  Rows filled by vector copies stay aligned to
    vectors.
    Differs: Ansor has no such annotation.

    Args:
        bytes: The choices of padding; those that are not whole elements are skipped.
    """

    bytes: tuple[int, ...] = (0, 4, 16)

    def declare(self, space: Space, target: Target) -> Space:
        state, constraints = space.state, list(space.constraints)
        for stage in space.state.stages:
            if stage.scope is not Scope.SHARED or stage.inlined or stage.op.ndim < 2:
                continue
            if stage.swizzle:  # swizzled rows are in different banks already
                continue
            size = stage.op.dtype.bytes
            pads = tuple(n // size for n in self.bytes if n % size == 0)
            state = state.pad(stage.name, OneOf(pads))
            constraints.append(_aligned(state.stage(stage.name)))
        return Space(state, tuple(constraints))


def _aligned(stage: Stage) -> Constraint:
    """The constraint that the padding is a whole number of vectors."""

    def holds(bounds: Bounds) -> Size:
        pad, width = bounds.number(stage.pad), bounds.number(copy_width(stage))
        return at_most(width - size_gcd(width, pad), 0)

    return Constraint(f"{stage.name}.pad", holds)
