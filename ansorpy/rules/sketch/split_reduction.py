"""The rule that lets several blocks sum parts of one reduction (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.expr import Axis
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.predicates import (
    has_data_reuse,
    reduce_extent,
    space_extent,
)
from ansorpy.rules.sketch.sum_in_registers import summed_in_registers
from ansorpy.rules.tiling.levels import factored_axes
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["SplitReduction"]


@dataclass(frozen=True)
class SplitReduction(SketchRule):
    """Factor the outer part of a reduce axis out of a reduction with few tiles or few results.

        C[i, j] = sum_k f(i, j, k)   -->   C.rf[s, i, j] = sum_k.1 f(i, j, (s, k.1))
                                           C[i, j] = sum_s C.rf[s, i, j]

    The new stage is scheduled like any other, with its parts in different blocks; a second kernel
    adds them up and does the elementwise work that follows.  The rule splits into as many parts as
    possible; their number is drawn for each placed sketch.  In a product, the longest axis is split
    into equal parts.  In other sums, the outermost long axis is split, so that blocks read whole
    rows; its last part may be shorter.
    Source: "split-K", as in CUTLASS.  Differs: Ansor's GPU rules leave most of the chip idle there.

    Args:
        tile: Elements of the smallest tile of a product that is worth a block; a product with
            fewer such tiles than multiprocessors is split.
        least: Steps of the shortest reduction of a product that is worth a second kernel.
        least_sum: The same for other reductions, each result of which takes a block.
        most_parts: Most parts of a product's reduction; the placement rule draws no more.
        most_sums: The same for other reductions.
        long: An axis with at least this extent is split before longer ones inside it.
    """

    tile: int = 64 * 64
    least: int = 256
    least_sum: int = 1 << 14
    most_parts: int = 64
    most_sums: int = 256
    long: int = 128

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if is_input(state, stage) or not stage.compute.reduce_axes:
            return Verdict.skip("it is not a reduction")
        if stage.is_write_cache:
            return Verdict.skip("it is a write cache; the uncached form is tried as well")
        if factored_axes(state, stage):
            return Verdict.skip("its reduction is already split")
        is_product = has_data_reuse(state, stage)
        if reduce_extent(stage) < (self.least if is_product else self.least_sum):
            return Verdict.skip("a short reduction")
        if space_extent(stage) >= (self.tile if is_product else 1) * target.cores:
            return Verdict.skip(f"it has enough work for {target.cores} multiprocessors")
        if is_product and self._part(_longest(stage).extent) == _longest(stage).extent:
            return Verdict.skip("no number of equal parts divides its reduction")
        return Verdict.apply("few blocks: several can share the reduction")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        stage = state.stage(stage_id)
        is_product = has_data_reuse(state, stage)
        axis = _longest(stage) if is_product else self._outermost(stage)
        most = self.most_parts if is_product else self.most_sums
        part = self._part(axis.extent) if is_product else -(-axis.extent // most)
        state, (outer, _) = state.split(stage.name, axis.name, (part,))
        state, partial = state.rfactor(stage.name, outer, 0)
        if not is_product:  # visit the sum of the parts again: threads may share it
            yield state, state.index(stage.name)
            return
        yield summed_in_registers(state, stage.name), state.index(partial)

    def _part(self, extent: int) -> int:
        """Elements per part, for as many equal parts as possible."""
        parts = max(n for n in range(1, min(self.most_parts, extent) + 1) if extent % n == 0)
        return extent // parts

    def _outermost(self, stage: Stage) -> Axis:
        """The outermost long axis; the longest if none is long."""
        axes = stage.compute.reduce_axes
        return next((axis for axis in axes if axis.extent >= self.long), _longest(stage))


def _longest(stage: Stage) -> Axis:
    return max(stage.compute.reduce_axes, key=lambda axis: axis.extent)
