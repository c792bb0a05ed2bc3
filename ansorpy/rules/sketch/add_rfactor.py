"""The rule that turns part of a long reduction into a parallel or vector axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir.expr import AxisKind
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.rowwise import contiguous_reduction, fills_lanes
from ansorpy.rules.predicates import (
    has_data_reuse,
    needs_rfactor,
    reads_along,
)
from ansorpy.rules.tiling.levels import reduce_in_one
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AddRfactor"]


@dataclass(frozen=True)
class AddRfactor(SketchRule):
    """Factor out the outer (threads) or the inner (vectors) part of the reduction: two sketches.

        C[i] = sum_k A[i, k]   -->   C.rf[i, k.0] = sum_k.1 A[i, k];  C[i] = sum_k.0 C.rf[i, k.0]

    The split factor is 1 here; the real one is drawn for each placed sketch.
    Paper: OSDI'20 §4.1, Table 1 rule 6.  Differs: with ``only_when_short`` a reduction is left
    whole if its space loops already keep every core busy (pooling, many row sums), whereas TVM
    factors any reduction longer than the number of cores.  A reduction that reads memory along its
    reduce axes already fills vector lanes and only lacks threads: only its outermost reduce loop is
    factored, so that the rest reads memory in order.
    """

    only_when_short: bool = False
    rows_per_core: int = 4

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if stage.is_write_cache:
            return Verdict.skip("it is a write cache; the uncached form is tried as well")
        if not needs_rfactor(state, stage, target.cores):
            return Verdict.skip(f"enough space loops for {target.cores} cores, or no reduction")
        if self.only_when_short and _has_parallel_vectors(state, stage, target):
            return Verdict.skip("its space loops fill all cores and vectors")
        if self._sums_in_lanes(state, stage, target):
            enough = 1 if target.cores == 1 else self.rows_per_core * target.cores
            if stage.op.size >= enough:
                return Verdict.skip("its rows fill all cores and its reduction the vectors")
        return Verdict.apply(f"too few space loops for {target.cores} cores: use the reduction's")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        name = state.stage(stage_id).name
        n_space = len(state.stage(stage_id).compute.axes)
        if self._sums_in_lanes(state, state.stage(stage_id), target):
            state, (outer, _) = state.split(name, _first_to_share(state.stage(stage_id)), (1,))
            yield _factored(state, name, outer.name, n_space, innermost=False)
            return
        state, fused = reduce_in_one(state, name)
        state, (outer, inner) = state.split(name, fused, (1,))
        yield _factored(state, name, outer.name, n_space, innermost=False)
        yield _factored(state, name, inner.name, n_space, innermost=True)

    def _sums_in_lanes(self, state: State, stage: Stage, target: Target) -> bool:
        if not self.only_when_short or has_data_reuse(state, stage):
            return False
        return fills_lanes(state, stage, contiguous_reduction(state, stage), target)


def _first_to_share(stage: Stage) -> str:
    """The first reduce axis longer than 1."""
    axes = stage.compute.reduce_axes
    return next((axis.name for axis in axes if axis.extent > 1), axes[0].name)


def _has_parallel_vectors(state: State, stage: Stage, target: Target) -> bool:
    """True when an untiled reduction can vectorize its last space axis and keep all cores busy."""
    axes = [axis for axis in stage.compute.axes if axis.extent > 1]
    if has_data_reuse(state, stage) or not axes:
        return False
    if not reads_along(state, stage, axes[-1], max_stride=2):
        return False
    lanes = lanes_of(state.inlined_dag.ops[stage.name], target)
    return stage.op.size >= target.cores * lanes


def _factored(state: State, name: str, it: str, axis: int, *, innermost: bool) -> Derived:
    state, partial = state.rfactor(name, it, axis)
    if innermost:
        iters = state.stage(partial).iters
        moved = [i for i in iters if i.name == it and i.kind is AxisKind.SPACE]
        state = state.reorder(partial, [*(i for i in iters if i not in moved), *moved])
    return state, state.index(partial) - 1
