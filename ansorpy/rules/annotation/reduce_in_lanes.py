"""Vectorize reductions along their reduce axes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.matching.rowwise import contiguous_reduction, fills_lanes
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["ReduceInLanes"]


@dataclass(frozen=True)
class ReduceInLanes(AnnotationRule):
    """Split a reduction that reads along its reduce axes into lanes with partial sums.

        for i:                          for i:
          for r, c: S[i] += A[i, r, c]    for r@c@.0:
                                   -->      for r@c@.1 in lanes: part += A[i, ...]
                                          S[i] = a tree over part

    The reduce axes whose elements are contiguous in memory become one loop.  The number of lanes is
    open: from one vector of the target to ``most_vectors``, which hide the latency of additions.
    A reduction no longer than a quarter of a vector stays a loop.
    Differs: Ansor can do this only with rfactor's inner sketch, through a tensor in memory.
    """

    most_vectors: int = 8

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in space.state.stages:
            lanes = self._choices(state, stage, target)
            if lanes:
                axes = _lane_axes(state, stage)
                others = [it.name for it in stage.iters if it.name not in axes]
                state = state.reorder(stage.name, [*others, *axes])
                state, fused = state.fuse(stage.name, axes)
                count = OneOf(lanes) if len(lanes) > 1 else lanes[0]
                state, _ = state.split_lanes(stage.name, fused, count)
        return Space(state, space.constraints)

    def _choices(self, state: State, stage: Stage, target: Target) -> tuple[int, ...]:
        """Numbers of lanes worth trying; the last may cover the whole reduction."""
        axes = _lane_axes(state, stage)
        if not fills_lanes(state, stage, axes, target):
            return ()
        length = prod(stage.root_extents[axis] for axis in axes)
        vector = lanes_of(state.inlined_dag.ops[stage.name], target)
        found = [vector]
        while found[-1] < min(length, self.most_vectors * vector):
            found.append(found[-1] * 2)
        return tuple(found)


def _lane_axes(state: State, stage: Stage) -> tuple[str, ...]:
    """The reduce axes of an unscheduled stage that can become its lanes, outermost first.

    Empty if a space loop is innermost already, or another stage is computed inside.
    """
    if is_input(state, stage) or stage.inlined or not stage.compute.reduce_axes:
        return ()
    innermost = stage.iters[-1]
    plain = innermost.kind is AxisKind.REDUCE and innermost.annotation is ForKind.SERIAL
    names = [it.name for it in stage.iters]
    whole = all(axis.name in names for axis in stage.compute.reduce_axes)
    if not plain or not whole or stage.compute.attrs.unroll_axes:
        return ()
    axes = contiguous_reduction(state, stage)
    return () if state.host_iters(stage) & set(axes) else axes
