"""The rule that lets the threads of a block share one reduction (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.matching.kernels import with_kernel_style
from ansorpy.rules.matching.relations import has_reduce_iters, is_tiled, single_consumer
from ansorpy.rules.matching.rowwise import contiguous_reduction
from ansorpy.rules.predicates import (
    fusible_consumer,
    has_data_reuse,
    needs_cross_thread_reduction,
    num_common_outer_iterators,
)
from ansorpy.rules.tiling.levels import reduce_in_one
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.stage import Iter, KernelStyle, SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["CrossThreadReduction"]

THREAD = ForKind.THREAD_X.value
STYLE = KernelStyle.CROSS_THREAD_REDUCTION


@dataclass(frozen=True)
class CrossThreadReduction(SketchRule):
    """Split the fused reduction by the warp size and bind the inner part to ``threadIdx.x``.

    If a single, untiled consumer shares outer loops, the reduction is computed inside them and
    both use the same threads: softmax's maximum and sum then stay in its kernel.
    Paper: OSDI'20 §4.1 (extension for GPU).  Source: TVM's RuleCrossThreadReduction.
    Differs: with ``threads`` the number of threads is open, so that a block may take a whole row.
    Elementwise work on each sum is done in the sum's kernel.  So are consumers without a reduction
    that re-read several inputs for each row (a norm's scale and offset), which TVM would tile.
    If there are fewer rows than multiprocessors, a kernel of its own for the sum is tried as well:
    then the consumer's can have more blocks.  No single thread sums a long contiguous row, because
    its neighbours would read far apart.

    Args:
        threads: Numbers of threads that a block may have; () for one warp, as in TVM.
        long: Steps of the shortest row that, with ``threads``, is always shared.
    """

    threads: tuple[int, ...] = ()
    long: int = 256

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if stage.is_write_cache:
            return Verdict.skip("it is a write cache")
        if not needs_cross_thread_reduction(state, stage, target):
            return Verdict.skip("enough space loops for the threads, or a short reduction")
        row = prod(stage.root_extents[axis] for axis in contiguous_reduction(state, stage))
        if self.threads and row >= self.long and not has_data_reuse(state, stage):
            return Verdict.apply_and_skip_rest("long contiguous rows: threads share each")
        return Verdict.apply("too few space loops for the threads: use the reduction's")

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        name = state.stage(stage_id).name
        consumer, common = _fusible(state, state.stage(stage_id), any_plain=bool(self.threads))
        rows = state.stage(stage_id).op.size
        state, fused = reduce_in_one(state, name)
        if consumer is None or self.threads and rows < target.cores:
            alone, (_, inner) = self._split(state, name, fused, target)
            alone = alone.bind(name, inner, THREAD)
            alone = _with_epilogue(alone, name) if self.threads else alone
            yield with_kernel_style(alone, name, STYLE), stage_id - 1
        if consumer is None:
            return
        state, source = self._thread_split(state, consumer, target)
        state, (_, inner) = state.follow_split(name, fused, (consumer.name, source), 1)
        state = state.bind(name, inner, THREAD)
        host = state.stage(consumer.name).iters[common - 1]
        state = state.compute_at(name, consumer.name, host)
        yield with_kernel_style(state, name, STYLE), stage_id - 1

    def _thread_split(self, state: State, consumer: Stage, target: Target) -> tuple[State, str]:
        """The consumer's loop whose inner part is bound to threads; if none is, the last one is."""
        source = _thread_source(consumer)
        if source is not None:
            return state, source
        last = consumer.iters[-1]
        state, (_, inner) = self._split(state, consumer.name, last, target)
        return state.bind(consumer.name, inner, THREAD), last.name

    def _split(
        self, state: State, name: str, it: Iter, target: Target
    ) -> tuple[State, tuple[Iter, ...]]:
        """Split a loop by the threads of a block: a warp, or an open number."""
        if not self.threads:
            return state.split(name, it, (target.warp_size,))
        least = min(self.threads)
        some = tuple(n for n in self.threads if n < 2 * max(it.extent or 1, least))
        return state.split(name, it, (OneOf(some) if len(some) > 1 else least,))


def _with_epilogue(state: State, name: str) -> State:
    """*state* with the elementwise work on each sum of *name* done by one thread of its block."""
    reader = fusible_consumer(state, state.stage(name), once_inlined=True)
    if reader is None or not reader.iters:
        return state
    state, (sums, one) = state.split(reader.name, reader.iters[-1], (1,))
    state = state.bind(reader.name, one, THREAD)
    return state.compute_at(name, reader.name, sums)


def _fusible(state: State, stage: Stage, *, any_plain: bool) -> tuple[Stage | None, int]:
    """The consumer whose threads the reduction can use, and how many outer loops they share.

    Differs: if the innermost common loop is the one to be bound to threads, TVM would attach
    below it; here the pair is not fused.
    """
    consumer = single_consumer(state, stage)
    if consumer is None or state.current_dag.is_output(stage.op):
        return None, 0
    common = num_common_outer_iterators(state.current_dag, stage.op, consumer.op)
    tiled = has_data_reuse(state, consumer)
    if common <= 0 or (tiled and not (any_plain and not consumer.compute.reduce_axes)):
        return None, 0
    if consumer.iters[common - 1].name != consumer.compute.axes[common - 1].name:
        return None, 0
    can_split = not is_tiled(consumer) and not has_reduce_iters(consumer)
    if can_split and common < len(consumer.iters) or _thread_source(consumer) is not None:
        return consumer, common
    return None, 0


def _thread_source(consumer: Stage) -> str | None:
    """The loop whose split produced *consumer*'s thread loop; None if it has no such loop."""
    threads = {it.name for it in consumer.iters if it.annotation is ForKind.THREAD_X}
    for relation in consumer.relations:
        if isinstance(relation, SplitRelation) and threads & set(relation.children):
            return relation.parent
    return None
