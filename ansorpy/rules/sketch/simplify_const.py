"""The rule for stages that multiply by small constant matrices (Winograd's transforms)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import is_input
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["SimplifyComputeWithConstTensor"]


@dataclass(frozen=True)
class SimplifyComputeWithConstTensor(SketchRule):
    """Unroll the axes that index constant matrices, innermost, and tile the others in two.

    With ``unroll_axes=("a", "r")``:

        for a, p, r:                     for p.0:
          T[a, p] += X[r, p] * B[r, a]     for p.1:
                                   -->       for a:  # unrolled
                                               for r:  # unrolled

    Source: TVM's RuleSimplifyComputeWithConstTensor.
    """

    max_innermost: int = 64

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        marked = () if is_input(state, stage) else stage.compute.attrs.unroll_axes
        if not marked:
            return Verdict.skip("no axes are marked unroll_axes")
        if not {it.name for it in stage.reduce_iters} <= set(marked):
            return Verdict.skip("a reduce axis is not in unroll_axes, so it cannot be unrolled")
        return Verdict.apply_and_skip_rest("constants fold once these axes are unrolled")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        stage = state.stage(stage_id)
        marked = stage.compute.attrs.unroll_axes
        outer, inner, unrolled = [], [], []
        for it in stage.iters:
            if it.name in marked:
                state = state.unroll(stage_id, it)
                unrolled.append(it)
                continue
            state, tiles = state.split(stage_id, it, (None,), max_innermost=self.max_innermost)
            outer.append(tiles[0])
            inner.append(tiles[1])
        yield state.reorder(stage_id, [*outer, *inner, *unrolled]), stage_id - 1
