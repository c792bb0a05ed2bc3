"""The rule that lets several blocks sum parts of one reduction (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.predicates import has_data_reuse, reduce_extent
from ansorpy.rules.sketch.sum_in_registers import summed_in_registers
from ansorpy.rules.tiling.levels import factored_axes
from ansorpy.rules.tiling.reduction_parts import ReductionParts
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["SplitReduction"]


@dataclass(frozen=True)
class SplitReduction(SketchRule):
    """Factor the outer part of a reduce axis out of a reduction with few tiles or few results.

        C[i, j] = sum_k f(i, j, k)   -->   C.rf[s, i, j] = sum_k.1 f(i, j, (s, k.1))
                                           C[i, j] = sum_s C.rf[s, i, j]

    The new stage is scheduled like any other, with its parts in different blocks; a second kernel
    adds them up, always in the same order, and does the elementwise work that follows.  The rule
    splits into as many parts as fill the grid with the largest tiles; their number is drawn for
    each placed sketch (:class:`~ansorpy.rules.placement.reduction_parts.DrawReductionParts`).
    Source: "split-K", as in CUTLASS.  Differs: Ansor's GPU rules leave most of the chip idle there.

    Args:
        parts: The numbers of parts.
        least: Steps of the shortest reduction of a product that is worth a second kernel.
        least_sum: The same for other reductions, each result of which takes a block.
    """

    parts: ReductionParts = ReductionParts()
    least: int = 256
    least_sum: int = 1 << 14

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if is_input(state, stage) or not stage.compute.reduce_axes:
            return Verdict.skip("it is not a reduction")
        if stage.is_write_cache:
            return Verdict.skip("it is a write cache; the uncached form is tried as well")
        if factored_axes(state, stage):
            return Verdict.skip("its reduction is already split")
        least = self.least if has_data_reuse(state, stage) else self.least_sum
        if reduce_extent(stage) < least:
            return Verdict.skip("a short reduction")
        if self.parts.most_that_fill(state, stage, target) < 2:
            return Verdict.skip(f"it has enough work for {target.cores} multiprocessors")
        if not self.parts.counts(state, stage, target):
            return Verdict.skip("no number of equal parts divides its reduction")
        return Verdict.apply("few blocks: several can share the reduction")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        stage = state.stage(stage_id)
        axis = self.parts.axis(state, stage)
        part = -(-axis.extent // self.parts.counts(state, stage, target)[-1])
        state, (outer, _) = state.split(stage.name, axis.name, (part,))
        is_product = has_data_reuse(state, stage)
        state, partial = state.rfactor(stage.name, outer, 0)
        if not is_product:  # visit the sum of the parts again: threads may share it
            yield state, state.index(stage.name)
            return
        yield summed_in_registers(state, stage.name), state.index(partial)
