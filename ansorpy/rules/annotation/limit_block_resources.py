"""Reject GPU kernels that exceed the shared memory, registers or blocks of the target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import cast

from ansorpy.ir.fragments import fragment_lanes
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.gpu.row_blocks import threads_in_rows
from ansorpy.rules.gpu.warp_tiling import team_of, warp_factors, warp_sum
from ansorpy.rules.matching.kernels import kernels, thread_factors, vthread_factors
from ansorpy.rules.tiling.levels import space_splits
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.shared_memory import is_in_shared, shared_bytes, uses_shared
from ansorpy.schedule.space import Constraint, Space
from ansorpy.schedule.stage import KernelStyle, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import Size, at_most, ceil_div, product, size_gcd, size_max
from ansorpy.target import Target

__all__ = ["LimitBlockResources", "registers_of"]

WORD = 4
ROW_BYTES = 16
"""Bytes in a matrix row that ``ldmatrix`` loads (PTX ISA)."""


@dataclass(frozen=True)
class LimitBlockResources(AnnotationRule):
    """Limit the shared memory, registers and blocks of each kernel to those of the target.

    Must come after the rules that pad tiles and open pipelines.  Shared memory is computed
    exactly.  Registers are an estimate: the sums, one operand per row and column of a thread's tile
    (in tensor-core kernels, a lane's share of all fragments), and ``spare`` ones for addresses.
    Source: TVM's VerifyGPUCode.  Differs: candidates are rejected before they are lowered.

    Args:
        registers: Whether to limit registers; TVM does not.
        spare: Registers that a kernel needs besides its tile.
        spare_in_rows: The same for kernels of style ROWS, which run several nests in sequence.
        spare_in_warps: The same for style ROWS_IN_WARPS, whose steps reuse each other's registers.
        opt_in: Whether kernels opt in to all available shared memory; TVM's keep the default limit.
        most_blocks: The largest grid along x.
    """

    registers: bool = True
    spare: int = 48
    spare_in_rows: int = 64
    spare_in_warps: int = 16
    opt_in: bool = True
    most_blocks: int = (1 << 31) - 1

    def declare(self, space: Space, target: Target) -> Space:
        state, constraints = space.state, list(space.constraints)
        for kernel in kernels(state):
            if any(map(partial(uses_shared, state), (kernel, *state.members(kernel)))):
                most = target.max_shared_optin_bytes if self.opt_in else target.max_shared_bytes
                constraints.append(_shared(kernel, most))
            if kernel.op.size > self.most_blocks:
                constraints.append(self._blocks(kernel))
            constraints += [_whole_rows(tile) for tile in _matrices(state, kernel)]
            threads = _threads(state, kernel)
            if self.registers and threads is not None:
                constraints.append(self._registers(kernel, threads, target))
        return Space(state, tuple(constraints))

    def _registers(self, kernel: Stage, threads: Product, target: Target) -> Constraint:
        spare = {
            KernelStyle.ROWS: self.spare_in_rows, KernelStyle.ROWS_IN_WARPS: self.spare_in_warps,
        }.get(kernel.kernel_style, self.spare)  # fmt: skip

        def holds(bounds: Bounds) -> Size:
            used = registers_of(bounds, kernel) + spare
            most = at_most(used, target.vector_registers)
            return most * at_most(used * bounds.number(threads), target.registers_per_block)

        return Constraint(f"{kernel.name}.registers", holds)

    def _blocks(self, kernel: Stage) -> Constraint:
        total = kernel.op.size
        tile = tuple(f for relation in space_splits(kernel) for p in relation.factors for f in p)

        def holds(bounds: Bounds) -> Size:
            elements = bounds.number(tile)
            return at_most(total - elements * self.most_blocks, 0)

        return Constraint(f"{kernel.name}.blocks", holds)


def _matrices(state: State, kernel: Stage) -> list[Stage]:
    """The shared tiles from which instructions load rows of matrices."""
    reads = state.inlined_dag.reads
    return [
        state.stage(read.tensor.name)
        for stage in state.members(kernel)
        if stage.tensorized is not None and not stage.compute.reduce_axes
        for read in reads[stage.name]
    ]


def _whole_rows(tile: Stage) -> Constraint:
    """The constraint that the rows of a tile start at multiples of 16 bytes."""
    width = ROW_BYTES // tile.op.dtype.bytes

    def holds(bounds: Bounds) -> Size:
        stride = bounds.region(tile.name)[-1].extent + bounds.number(tile.pad)
        return at_most(width - size_gcd(stride, width), 0)

    return Constraint(f"{tile.name}.rows", holds)


def _threads(state: State, kernel: Stage) -> Product | None:
    """The threads of a block, if the kernel determines them; else None."""
    match kernel.kernel_style:
        case KernelStyle.THREAD_TILES:
            return thread_factors(kernel)
        case KernelStyle.ROWS:
            return threads_in_rows(kernel)
        case KernelStyle.TENSOR_CORES | KernelStyle.ROWS_IN_WARPS:
            total = warp_sum(state, kernel)
            return (team_of(total), *warp_factors(total))
        case _:
            return None


def _shared(kernel: Stage, most: int) -> Constraint:
    def holds(bounds: Bounds) -> Size:
        return at_most(shared_bytes(bounds, kernel), most)

    return Constraint(f"{kernel.name}.shared", holds)


def registers_of(bounds: Bounds, kernel: Stage) -> Size:
    """Registers of one thread for its sums and the operands of one step."""
    state = bounds.state
    if kernel.kernel_style is KernelStyle.TENSOR_CORES:
        return _held_by_lane(bounds, state.members(kernel))
    if kernel.kernel_style is KernelStyle.ROWS_IN_WARPS:
        return _held_in_turn(bounds, kernel)
    by_rows = kernel.kernel_style is KernelStyle.ROWS
    total = cast(Size, 0)
    for stage in state.members(kernel):
        if is_in_shared(state, stage) or stage.attach is None:
            continue
        extents = [span.extent for span in bounds.region(stage.name)]
        words = max(1, stage.op.dtype.bytes // WORD)
        vthreads = _virtual_threads(bounds, kernel, state.stage(stage.attach.stage))
        held = product(extents) * vthreads * words + sum(extents, cast(Size, 0))
        # In a kernel of rows, one sum is live at a time; in a kernel of tiles, all are at once.
        total = size_max(total, held) if by_rows else total + held
    return total


def _virtual_threads(bounds: Bounds, kernel: Stage, host: Stage) -> Size:
    """Virtual threads per thread in the loops of *host*, a stage of *kernel* that hosts a sum."""
    if kernel.kernel_style is KernelStyle.THREAD_TILES:
        return bounds.number(vthread_factors(kernel))
    extents = bounds.extents(host.name)
    return product(extents[it.name] for it in host.iters if it.annotation is ForKind.VTHREAD)


def _held_by_lane(bounds: Bounds, stages: Iterable[Stage]) -> Size:
    """Registers of the fragments of *stages* that a lane holds."""
    total: Size = 0
    for stage in stages:
        if stage.fragment is not None:
            elements = product(span.extent for span in bounds.region(stage.name))
            held = fragment_lanes(stage.fragment) * WORD
            total = total + ceil_div(elements * stage.op.dtype.bytes, held)
    return total


def _held_in_turn(bounds: Bounds, kernel: Stage) -> Size:
    """Registers of a lane's share of what is live for all blocks of keys, and at once in one.

    The scores give way to the exponentials, which are next to the operands of each product in turn;
    those of a whole block that are summed at once are next to its exponentials for a time.
    """
    state = bounds.state
    total = warp_sum(state, kernel)
    kept = [s for s in state.attached(kernel) if s.fragment is not None]
    scores, raised = (
        next(s for s in state.attached(total) if s.fragment and bool(s.compute.reduce_axes) is sums)
        for sums in (True, False)
    )
    operands = [s for s in state.attached(total) if s.fragment and s not in (scores, raised)]
    at_once = intrinsic(scores.tensorized[1]).asynchronous if scores.tensorized else False
    first = _held_by_lane(bounds, (scores, *([raised] if at_once else state.members(scores))))
    second = _held_by_lane(bounds, (raised, *operands))
    return _held_by_lane(bounds, kept) + size_max(first, second)
