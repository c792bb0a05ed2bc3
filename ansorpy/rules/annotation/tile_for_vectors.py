"""Give untiled stages an inner loop worth vectorising."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ansorpy.ir.expr import Axis, AxisKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.predicates import reads_along
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["TileForVectors"]


@dataclass(frozen=True)
class TileForVectors(AnnotationRule):
    """Split the last space loop of untiled stages and move its inner part inside the reduction.

        for n, c:                    for n, c.0:
          for k: P[n, c] max=  -->     for k:
                                         for c.1: P[n, c] max= ...

    Without a reduction, the tiles need not divide the axis: the last one is shifted to fit.
    A stage computed inside another keeps its last loop whole, because its region is small already.
    Reductions that do not read along that axis (row sums) are left alone.
    Differs: TVM leaves such stages to LLVM's vectoriser; our generator vectorises only annotated
    loops.
    """

    max_innermost: int = 64
    max_stride: int = 2

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in space.state.stages:
            axis = None if is_input(state, stage) else self._vector_axis(state, stage)
            if axis is not None:
                state = self._tile(state, stage, stage.iter(axis.name))
        return Space(state, space.constraints)

    def _tile(self, state: State, stage: Stage, last: Iter) -> State:
        inner = last
        if stage.attach is None:
            tail: Literal["guard", "shift"] = "guard" if stage.compute.reduce_axes else "shift"
            state, (_, inner) = state.split(
                stage.name, last, (None,), max_innermost=self.max_innermost, tail=tail
            )
        iters = state.stage(stage.name).iters
        return state.reorder(stage.name, [*(it for it in iters if it != inner), inner])

    def _vector_axis(self, state: State, stage: Stage) -> Axis | None:
        """The last non-unit space axis of an unscheduled stage, if it can become a vector."""
        touched = bool(stage.relations) or stage.inlined or bool(stage.compute.attrs.unroll_axes)
        axes = [axis for axis in stage.compute.axes if axis.extent > 1]
        if touched or not axes:
            return None
        last = axes[-1]
        inner = {last.name, *(axis.name for axis in stage.compute.reduce_axes)}
        if inner & state.host_iters(stage):
            return None
        if stage.compute.reduce_axes and not reads_along(state, stage, last, self.max_stride):
            return None
        is_innermost = stage.iters[-1].name == last.name
        if is_innermost and (stage.attach is not None or stage.iters[-1].kind is AxisKind.REDUCE):
            return None
        return last
