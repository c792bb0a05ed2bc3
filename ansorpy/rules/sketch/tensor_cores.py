"""The rule that multiplies on tensor cores, with fragments in the registers of warps (CUDA)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ansorpy.rules.base import Derived, SketchRule
from ansorpy.rules.gpu.mma_choice import (
    MmaChoice,
    best_choice,
    has_mma_sync,
    has_wgmma,
    matrix_load,
    reason_against,
    wgmma_choices,
)
from ansorpy.rules.gpu.warp_tiling import (
    fill_by_lanes,
    fill_by_matrices,
    multiplied,
    tile_for_warps,
    tile_like_warps,
)
from ansorpy.rules.matching.relations import is_input, is_tiled
from ansorpy.rules.predicates import (
    fusible_consumer,
    reads_in_place,
)
from ansorpy.rules.tiling.levels import factored_axes, last_of_outermost_reduce_tile
from ansorpy.rules.verdict import Verdict
from ansorpy.schedule.stage import KernelStyle
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["TensorCores"]


@dataclass(frozen=True)
class TensorCores(SketchRule):
    """Compute a sum of products on tensor cores, each warp with a grid of sums in its registers.

        for i, j, k: C[i, j] += A[i, k] * B[k, j]
        for i, j: D[i, j] = f(C[i, j])
                                     -->
        for blocks, warps, lanes:
          for k.0:  # tiles in shared memory, made by AddCacheRead
            for k.1:
              A.warp, B.warp = each lane's elements, loaded by ldmatrix where rows allow it
              for i.2, j.2: C.warp[i.2, j.2] += A.warp[i.2] * B.warp[j.2]  # one instruction
          D[...] = f(C.warp[...])  # each lane its own

    Axes that fragments do not divide are padded with zeros, which are never stored.  Sketches
    without tensor cores are tried as well, except for definitions that round their factors to
    TF32.  Where warpgroups have instructions that read tiles directly from shared memory (wgmma),
    each of several widths of the instruction gives a sketch of its own; its operands are copied
    into shared memory instead of into fragments.
    Source: the tiles of CUTLASS's kernels for mma.sync and wgmma.
    Differs: Ansor has no such instructions.

    Args:
        most_waste: Limit on products computed in whole fragments, relative to those needed.
    """

    most_waste: float = 4.0

    def meets(self, state: State, stage_id: int, target: Target) -> Verdict:
        stage = state.stage(stage_id)
        if not has_mma_sync(target):
            return Verdict.skip("the target has no tensor cores of this kind")
        if is_input(state, stage) or is_tiled(stage) or stage.is_write_cache:
            return Verdict.skip("an input, or it has loops of its own already")
        if stage.compute.attrs.unroll_axes:
            return Verdict.skip("one of its factors is a matrix of constants")
        found = best_choice(stage.op)
        if found is None:
            return Verdict.skip("not a sum of products that an instruction computes")
        against = reason_against(stage.compute, found, self.most_waste)
        if against is not None:
            return Verdict.skip(against)
        reason = f"{found.by.name} multiplies such values"
        rounds = stage.compute.attrs.rounds_to_tf32
        return Verdict.apply_and_skip_rest(reason) if rounds else Verdict.apply(reason)

    def apply(self, state: State, stage_id: int, target: Target) -> Iterable[Derived]:
        op = state.stage(stage_id).op
        mma_sync = best_choice(op)
        assert mma_sync is not None
        wgmma = wgmma_choices(op) if has_wgmma(target) else []
        for found in (mma_sync, *wgmma):
            yield self._multiplied(state, stage_id, found)

    def _multiplied(self, state: State, stage_id: int, found: MmaChoice) -> Derived:
        """The stage computed in fragments as *found* specifies."""
        host = state.stage(stage_id).name
        apart = factored_axes(state, state.stage(host))
        state, (left, right, total) = multiplied(state, host, found)
        consumer = fusible_consumer(state, state.stage(host), once_inlined=True)
        if consumer is not None and reads_in_place(state, consumer, state.stage(host)):
            state, host = state.compute_inline(host), consumer.name
        state = tile_for_warps(state, total, found.by.name, found.depth.name, apart)
        state, loop = tile_like_warps(state, host, total)
        state = state.compute_at(total, host, loop)
        inner = state.stage(total).reduce_iters
        for operand in (left, right):
            if state.stage(operand).fragment is None:
                tiles = last_of_outermost_reduce_tile(state.stage(total))
                state = state.compute_at(operand, total, tiles)
                continue
            load = matrix_load(state.stage(operand), found.depth.name, of_part=bool(apart))
            if load is None:
                state = fill_by_lanes(state, operand)
            else:
                state = fill_by_matrices(state, operand, load.name)
            state = state.compute_at(operand, total, inner[-2])
        state = state.set_kernel_style(host, KernelStyle.TENSOR_CORES.value)
        return state, state.index(left) - 1
