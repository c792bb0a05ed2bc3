"""Tile transposing stages so that they use whole cache lines."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.analysis.access import accesses
from ansorpy.ir.expr import Axis
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["TileTransposes"]


@dataclass(frozen=True)
class TileTransposes(AnnotationRule):
    """Split the last axis of a transposing stage; put the axis along which it reads next to it.

        for c, v: T[c, v] = A[v, c]   -->   for v.0, c.0, c.1, v.1: T[c, v] = A[v, c]

    A vector of ``v.1`` touches one cache line per row of A; iterating over ``c`` next uses all of
    these lines before they are evicted.  ``c.1`` is unrolled and a vector long, so that a square of
    elements is read along ``c`` and transposed in registers; a shorter axis is not split and uses
    gathers.  Tiles need not divide the axes: the last tile is shifted.
    """

    max_innermost: int = 64
    narrowest_bits: int = 32

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in space.state.stages:
            across = None if is_input(state, stage) else _across(state, stage)
            if across is None:
                continue
            last = stage.iters[-1]
            state, (outer, inner) = state.split(
                stage.name, last, (None,), max_innermost=self.max_innermost, tail="shift"
            )
            rest = [it for it in stage.iters if it.name not in (last.name, across.name)]
            state, walked = self._walked(state, stage, across, target)
            state = state.reorder(stage.name, [*rest, outer, *walked, inner])
            if len(walked) > 1:
                state = state.unroll(stage.name, walked[-1])
        return Space(state, space.constraints)

    def _walked(
        self, state: State, stage: Stage, across: Axis, target: Target
    ) -> tuple[State, tuple[Iter, ...]]:
        """The loops over *across*, split by the vector width, or one loop if it is shorter."""
        lanes = target.lanes(max(self.narrowest_bits, stage.op.dtype.bits))
        if not 1 < lanes <= across.extent:
            return state, (stage.iter(across.name),)
        return state.split(stage.name, across.name, (lanes,), tail="shift")


def _across(state: State, stage: Stage) -> Axis | None:
    """The axis along which an unscheduled stage reads contiguously; None if it is the last one."""
    if stage.inlined:
        return None
    op = state.inlined_dag.ops[stage.name]
    untouched = bool(op.axes) and not (stage.relations or op.reduce_axes)
    in_order = [it.name for it in stage.iters] == [axis.name for axis in op.axes]
    if not (untouched and in_order) or state.host_iters(stage):
        return None
    last, across = op.axes[-1], set[Axis]()
    for access in accesses(op):
        inner = access.innermost
        terms = [set[Axis]() if found is None else set(found[0]) for found in access.terms]
        if None in access.terms or (terms and len(terms[inner]) > 1):
            return None
        if any(last in t for d, t in enumerate(terms) if d != inner):
            across |= terms[inner]
    across.discard(last)
    return across.pop() if len(across) == 1 and last.extent > 1 else None
