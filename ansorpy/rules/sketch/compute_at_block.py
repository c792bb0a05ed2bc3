"""The rule that computes all stages of a chain at a block of rows, in one pass over the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.relations import has_reduce_iters, is_input
from ansorpy.rules.matching.rowwise import (
    at_block,
    block_axes,
    passes_once,
    with_cheap_inlined,
)
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["ComputeAtBlock"]


@dataclass(frozen=True)
class ComputeAtBlock(SketchRule):
    """Compute every stage at an outer block of the last one, in one parallel nest.

        for r: top[r] = max_k x[r, k]              for r.0:  # a block of rows
        for r, k: e[r, k] = exp(x - top[r])          for r, k: top[r] max= x[r, k]
        for r, k: total[r] += e[r, k]         -->    for r, k: e[r, k] = exp(x - top[r])
        for r, k: y[r, k] = e / total[r]             for r, k: total[r] += e[r, k]
                                                     for r.1, k: y[r, k] = e / total[r]

    The rule is for definitions whose stages are elementwise or reduce rows (softmax,
    normalisations, norms): data are loaded from memory once and intermediate values stay in the
    cache.  Values per row, and costly values that are read twice, are kept for the block;
    everything else is inlined.  If the blocks alone keep all cores busy, no other structure is
    tried.

    Source: TVM reaches this by random compute locations, one stage at a time; cuDNN and oneDNN
    implement it by hand.
    """

    blocks_per_core: int = 4
    max_rows: int = 64

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        last = state.stage(stage_id)
        if stage_id != len(state.stages) - 1 or state.current_dag.outputs != (last.op,):
            return Verdict.skip("not the only output")
        if last.is_placeholder or last.relations or last.op in state.current_dag.constant_ops:
            return Verdict.skip("its loops are already scheduled, or it runs at bind time")
        # Asked first, as inlining takes longer.  Only reductions re-read, and are never inlined.
        for stage in reversed(state.stages[:-1]):
            if not is_input(state, stage) and not passes_once(state, stage):
                return Verdict.skip(f'"{stage.name}" re-reads its inputs')
        state, members = with_cheap_inlined(state, last)
        if not members:
            return Verdict.skip("no producer needs a compute location")
        if not passes_once(state, last):
            return Verdict.skip(f'"{last.name}" re-reads its inputs')
        axes = block_axes(state, last, members)
        if not axes:
            return Verdict.skip("none of its blocks needs only a part of every producer")
        reason = f"blocks of {', '.join(axes)} need disjoint parts of all producers"
        blocks = prod(last.root_extents[name] for name in axes)
        alone = blocks >= self.blocks_per_core * target.cores
        return Verdict.apply_and_skip_rest(reason) if alone else Verdict.apply(reason)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        last = state.stage(stage_id)
        state, members = with_cheap_inlined(state, last)
        axes = block_axes(state, last, members)
        state, (outer, _) = state.split(
            last.name, axes[-1], (None,), max_innermost=self.max_rows,
            tail="guard" if has_reduce_iters(last) else "shift",
        )  # fmt: skip
        yield at_block(state, last.name, [*axes[:-1], outer.name], members), -1
