"""The rule that computes attention in the registers of warps, with a running maximum (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.ir.extents import most
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.mma_choice import has_mma_sync, has_wgmma, reason_against
from ansorpy.rules.gpu.warp_rows import WarpRows, group_rows, warp_rows, with_warp_rows
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.fragments import COLUMNS
from ansorpy.target import Target

__all__ = ["ChainInWarps"]


@dataclass(frozen=True)
class ChainInWarps(SketchRule):
    """Compute both products of attention on tensor cores, block by block of keys.

        for i, j: S[i, j] += Q[i, d] * K[d, j]      for i.0:                     # blocks, warps
        for i: top[i] max= S[i, j]                    for j.0, j.1:              # blocks of keys
        for i, j: E[i, j] = exp(S - top)                for i.1, j.2: S += ...   # fragments
        for i: sum[i] += E[i, j]               -->      top max= S; f = exp(top before - top)
        for i, d: O[i, d] += E[i, j] * V[j, d]          E = exp(S - top); sum = sum * f + E
        for i, d: Y[i, d] = O / sum                     O = O * f; O += E * V    # fragments
                                                      Y = O / sum

    Everything but the tiles of K and V is in the registers of warps, however many keys there are.
    In a second sketch, Q is in shared memory, which leaves registers for more rows of wide heads.

    Source: Dao 2023, "FlashAttention-2"; none in Ansor.

    Args:
        most_waste: The most work, as a factor, that padding to whole fragments may take.
        widest: The widest heads whose queries and results fit in registers.
    """

    most_waste: float = 2.0
    widest: int = 192

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        if stage_id != len(state.stages) - 1:
            return Verdict.skip("not the last stage")
        if not has_mma_sync(target):
            return Verdict.skip("the target has no matrix products of warps")
        plan = warp_rows(state)
        if isinstance(plan, str):
            return Verdict.skip(plan)
        for name, found in ((plan.scores, plan.first), (plan.mixed, plan.second)):
            reason = reason_against(state.stage(name).compute, found, self.most_waste)
            if reason is not None:
                return Verdict.skip(reason)
        if plan.second.by.pattern.reduce_axes[0].extent != COLUMNS:
            return Verdict.skip(f"{plan.second.by.name} does not take {COLUMNS} keys at once")
        widths = plan.first.depth.extent, plan.second.columns.extent
        if any(most(extent) > self.widest for extent in widths):
            return Verdict.skip(f"heads are wider than {self.widest}")
        return Verdict.apply_and_skip_rest(f"{plan.first.by.name} multiplies such values")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        plan = warp_rows(state)
        assert isinstance(plan, WarpRows)
        for shared in (False, True):
            yield with_warp_rows(plan, shared=shared), -1
        for by_groups in group_rows(plan) if has_wgmma(target) else ():
            yield with_warp_rows(by_groups, shared=True), -1
