"""The reference schedule, whose output every candidate of a task is compared with."""

from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.expr import AxisKind
from ansorpy.measure.check.wide_sums import wide_sums
from ansorpy.schedule.state import State

__all__ = ["reference_state"]

_MOST_LANES = 64
"""Elements of a row computed together: four 512-bit vectors hide the latency of a sum."""


def reference_state(dag: ComputeDAG) -> State:
    """Schedule *dag* in the simplest way that does not take seconds for a large sum.

    Long sums use float64 (:func:`~ansorpy.measure.check.wide_sums.wide_sums`).  Every stage is
    computed in full and in the order of its axes; a piece of its last axis is vectorized, and the
    outer axes run on all cores:

        for i, j:                                  for i:  # parallel
          for k: C[i, j] += ...          -->         for j.0, k:
                                                       for j.1: C[i, j] += ...  # vectorized

    The piece size divides the axis, so there are neither guards nor tails.
    """
    if dag.routine is not None:
        return State.initial(dag)
    state = State.initial(wide_sums(dag))
    for stage in state.stages:
        if not stage.is_placeholder:
            state = _vectorized(state, stage.name)
            state = _parallel(state, stage.name)
    return state


def _vectorized(state: State, name: str) -> State:
    """Split the last space axis into vectors and move the reduction outside them."""
    stage = state.stage(name)
    last = stage.compute.axes[-1] if stage.compute.axes else None
    if last is None or last.name not in {it.name for it in stage.iters}:
        return state
    lanes = _largest_divisor(last.extent)
    if lanes == 1:
        return state
    state, (outer, inner) = state.split(name, last.name, (lanes,))
    reduce = [it for it in stage.iters if it.kind is AxisKind.REDUCE]
    state = state.reorder(name, [outer, *reduce, inner])
    return state.vectorize(name, [inner])


def _parallel(state: State, name: str) -> State:
    """Parallelize the first space axis with more than one iteration, fused with those before it."""
    taken = []
    for it in state.stage(name).iters[:-1]:
        if it.kind is not AxisKind.SPACE:
            break
        taken.append(it)
        if it.extent is None or it.extent > 1:
            break
    return state.parallel(name, taken) if taken else state


def _largest_divisor(extent: int) -> int:
    return next(n for n in range(min(extent, _MOST_LANES), 0, -1) if extent % n == 0)
