"""The rule that computes all stages in one pass over rows, several rows per block (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.row_blocks import RowBlock, RowKernel, is_single, row_kernel
from ansorpy.rules.matching.relations import has_reduce_iters
from ansorpy.rules.matching.rowwise import contiguous_reduction, passes_once, with_cheap_inlined
from ansorpy.rules.predicates import reads_along, reduce_extent
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["RowsAtBlock"]


@dataclass(frozen=True)
class RowsAtBlock(SketchRule):
    """Compute every stage at a block of rows of the last one, with threads in rows and lanes.

        for r, k: top[r] max= x[r, k]             for r.0:                # blockIdx.x
        for r, k: e[r, k] = exp(x - top[r])         for r.1:              # threadIdx.y
        for r, k: total[r] += e[r, k]        -->      for k: top[r] max=  # shared by threadIdx.x
        for r, k: y[r, k] = e / total[r]            for r.1, k: e[r, k] = exp(x - top[r])
                                                    for r.1, k: total[r] += e[r, k]
                                                    for r.1, k: y[r, k] = e / total[r]

    For definitions whose stages are elementwise or sum contiguous rows (softmax, norms, row sums),
    this gives one kernel, with a warp per row if rows are short, that keeps intermediate values in
    shared memory.  The rule also applies to long sums with few results (a vector times a matrix,
    means of channels): each thread of a block sums a part, and the parts are combined in shared
    memory; if results are contiguous and rows are not, adjacent threads have adjacent results.
    Source: none in Ansor, where each block has one row (its cross-thread reduction).

    Args:
        few: How often a product may read its largest input and still gain nothing from tiles.
        long: Minimum number of reduction steps of such a product for threads to share it.
    """

    few: int = 4
    long: int = 256

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        last = state.stage(stage_id)
        if stage_id != len(state.stages) - 1 or state.current_dag.outputs != (last.op,):
            return Verdict.skip("not the only output")
        if state.history or last.is_placeholder or last.op in state.current_dag.constant_ops:
            return Verdict.skip("some loops are already scheduled, or the stages run at bind time")
        plan = self._plan(state, last)
        if isinstance(plan, str):
            return Verdict.skip(plan)
        _, kernel = plan
        return Verdict.apply(f"a block of {', '.join(kernel.blocks)} needs only its own rows")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        plan = self._plan(state, state.stage(stage_id))
        assert not isinstance(plan, str)
        made = RowBlock(*plan)
        if is_single(*plan):
            made.tile_single()
        else:
            made.tile_last(own_rows=self._has_own_rows(*plan, made.kernel.last))
        for name in reversed(made.kernel.members):
            made.place(name, own_rows=self._has_own_rows(*plan, name))
        yield made.state, -1

    def _has_own_rows(self, state: State, kernel: RowKernel, name: str) -> bool:
        """Whether a thread computes several results of the sum *name* at once.

        The results of a product reuse an operand; contiguous results are read as vectors.
        """
        stage = state.stage(name)
        if not has_reduce_iters(stage):
            return False
        return kernel.across or not passes_once(state, stage)

    def _has_few_results(self, state: State, stage: Stage) -> bool:
        steps = reduce_extent(stage)
        inputs = [producer.size for producer in state.current_dag.reads(stage.compute)]
        once = stage.op.size * steps <= self.few * max(inputs, default=0)
        return once and steps >= self.long

    def _plan(self, state: State, last: Stage) -> tuple[State, RowKernel] | str:
        """The kernel that *state* can become, with cheap stages inlined, or why it cannot."""
        state, members = with_cheap_inlined(state, last)
        stages = [state.stage(name) for name in (*members, last.name)]
        again = [
            stage.name for stage in stages
            if not (passes_once(state, stage) or self._has_few_results(state, stage))
        ]  # fmt: skip
        if again:
            return f'"{again[0]}" re-reads its inputs'
        sums = [stage for stage in stages if has_reduce_iters(stage)]
        if not sums:
            return "there is no reduction"
        rows = {axis.name for axis in last.compute.axes}
        kernel = row_kernel(state, last.name, members[::-1], (), rows)
        if isinstance(kernel, str):
            return kernel
        if is_single(state, kernel) and kernel.row is None:
            return f'"{last.name}" is a single element'
        strided = [stage for stage in sums if not contiguous_reduction(state, stage)]
        if not strided:
            return state, kernel
        if _lie_across(state, kernel, sums):
            return state, replace(kernel, across=True)
        return f'the elements that "{strided[0].name}" sums are not contiguous'


def _lie_across(state: State, kernel: RowKernel, sums: Sequence[Stage]) -> bool:
    """Whether neighbouring rows are contiguous in all tensors that the *sums* read."""
    last = state.stage(kernel.last)
    innermost = [axis.name for axis in last.compute.axes if axis.extent > 1][-1:]
    if kernel.row not in innermost or not (is_single(state, kernel) or last in sums):
        return False
    alone = last in sums and len(sums) == 1 or last not in sums
    axes = [(stage, stage.compute.axes[-1:]) for stage in sums]
    return alone and all(axis and reads_along(state, s, axis[0], 1) for s, axis in axes)
