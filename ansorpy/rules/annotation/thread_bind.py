"""Bind loops to the GPU's blocks, virtual threads and threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ansorpy.ir.loops import ForKind, Scope
from ansorpy.rules.annotation.parallel import parallel_prefix
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.gpu.block_tiles import BlockLimits, draw_block_tiles, threads_of
from ansorpy.rules.gpu.mma_choice import nearest_axis
from ansorpy.rules.gpu.row_blocks import thread_sources, threads_in_rows
from ansorpy.rules.gpu.warp_tiling import team_of, warp_sum
from ansorpy.rules.gpu.wide_copies import copy_width, widen_copies
from ansorpy.rules.matching.branches import branch_axes, chosen_by_remainder, periods
from ansorpy.rules.matching.kernels import kernels_in, thread_factors, vthread_factors
from ansorpy.rules.predicates import reads_in_place
from ansorpy.rules.tiling.levels import space_splits
from ansorpy.rules.tiling.roundness import draw_splits
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import OneOf, Product
from ansorpy.schedule.lowering.gpu.lane_loops import ALONG_X
from ansorpy.schedule.space import Constraint, Space, Table
from ansorpy.schedule.stage import Iter, KernelStyle, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import Size, above, at_most, size_gcd
from ansorpy.target import Target

__all__ = ["ThreadBind"]

BLOCK, VTHREAD, THREAD = ForKind.BLOCK_X.value, ForKind.VTHREAD.value, ForKind.THREAD_X.value
BOUND_LEVELS = (BLOCK, VTHREAD, THREAD)

WORD = 4


@dataclass(frozen=True)
class ThreadBind(AnnotationRule):
    """Bind the outer space tiles of every kernel, and let all its threads fetch shared tiles.

    Tiled kernels: level 0 -> blockIdx.x, 1 -> vthread, 2 -> threadIdx.x, with constraints on the
    products of the last two.  Other kernels: all space loops are fused, then split by the number of
    threads of a block.  Sampled rows of tiled kernels respect the limits, and have whole warps if
    possible.
    Source: TVM's InitThreadBind, whose fetches move single elements and whose untiled kernels have
    one warp of threads per block.

    Args:
        vectors: How many elements a thread may copy at once into shared memory; only numbers that
            divide the rows of the tile and of its source are allowed.
        untiled_threads: Numbers of threads that a block of an untiled kernel may have; () for one
            warp.
        most_elements: Most elements of a tile that a thread computes, in sampled rows.
        redraws: How often rows that violate a constraint are redrawn.
    """

    vectors: tuple[int, ...] = (1,)
    untiled_threads: tuple[int, ...] = ()
    most_elements: int = 256
    redraws: int = 12

    def declare(self, space: Space, target: Target) -> Space:
        state, constraints = space.state, list(space.constraints)
        for name in reversed([stage.name for stage in state.stages]):
            stage = state.stage(name)
            if stage.is_placeholder or stage.inlined or name in state.constant_stages:
                continue
            if stage.attach is None:
                constraints += _limits(stage, target)
                state = self._bind_kernel(state, stage, target)
            elif stage.scope is Scope.SHARED:
                state = self._fetch_together(state, name, constraints)
        return Space(state, tuple(constraints))

    def _bind_kernel(self, state: State, kernel: Stage, target: Target) -> State:
        """Bind the loops of *kernel* that its sketch has left unbound."""
        match kernel.kernel_style:
            case KernelStyle.THREAD_TILES:
                return _bind_levels(state, kernel.name)
            case KernelStyle.CROSS_THREAD_REDUCTION:
                return _bind_blocks(state, kernel.name)
            case KernelStyle.TENSOR_CORES | KernelStyle.ROWS_IN_WARPS | KernelStyle.ROWS:
                return state
            case KernelStyle.PLAIN:
                return self._bind_untiled(state, kernel.name, target)

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        tiled = kernels_in(space.state, KernelStyle.THREAD_TILES)
        limited = bool(tiled or kernels_in(space.state, KernelStyle.ROWS))
        table = self._drawn(space, tiled, table, target, rng)
        for turn in range(self.redraws if limited else 0):
            wrong = ~space.valid(table)
            for stage in tiled if 2 * turn < self.redraws else ():
                wrong |= threads_of(space, stage, table) % target.warp_size != 0
            rows = np.flatnonzero(wrong)
            if not len(rows):
                break
            fresh = space.sample(len(rows), rng)
            table[rows] = self._drawn(space, tiled, fresh, target, rng)
        return table

    def _drawn(
        self, space: Space, tiled: Sequence[Stage], table: Table, target: Target,
        rng: np.random.Generator,
    ) -> Table:  # fmt: skip
        for stage in tiled:
            limits = BlockLimits(
                _least_threads(stage, target), target.max_threads_per_block, target.max_vthread,
                self.most_elements, target.warp_size,
            )  # fmt: skip
            table = draw_block_tiles(space, stage, table, limits, rng)
        for stage in space.state.stages if self.untiled_threads and tiled else ():
            if stage.attach is not None and stage.compute.reduce_axes:
                table = draw_splits(space, table, rng, of=stage)
        if kernels_in(space.state, KernelStyle.ROWS):
            table = draw_splits(space, table, rng)
        return widen_copies(space, table, rng)

    def _bind_untiled(self, state: State, name: str, target: Target) -> State:
        state, inside = self._formula_loops_inside(state, name)
        outer, _ = parallel_prefix(state, state.stage(name))
        outer = tuple(it for it in outer if it.name not in inside)
        if not outer:
            return state
        vectors = self._row_vectors(state, state.stage(name), outer)
        if len(vectors) > 1:
            state, (row, vector) = state.split(name, outer[-1], (OneOf(vectors),))
            state = _sum_vectors(state, name, row).vectorize(name, [vector])
            outer = (*outer[:-1], row)
        state, fused = state.fuse(name, outer)
        least = target.warp_size
        if fused.extent is not None and fused.extent <= least:
            return state.bind(name, fused, THREAD)
        most = 2 * state.stage(name).op.size
        threads = tuple(n for n in self.untiled_threads if n < most) or (least,)
        number = OneOf(threads) if len(threads) > 1 else threads[0]
        state, (block, thread) = state.split(name, fused, (number,))
        return state.bind(name, block, BLOCK).bind(name, thread, THREAD)

    def _formula_loops_inside(self, state: State, name: str) -> tuple[State, frozenset[str]]:
        """Move the loops that select between formulas inside all others, and unroll them.

        A thread then evaluates all the formulas on operands that it loads once.
        """
        stage = state.stage(name)
        if not self.untiled_threads or state.host_iters(stage) or stage.compute.reduce_axes:
            return state, frozenset()
        op = state.inlined_dag.ops[name]
        chosen, periods_of = branch_axes(op), periods(op)
        remainders = chosen_by_remainder(op) & periods_of.keys()
        inside = []
        for it in stage.iters:
            if it.name in chosen and it.extent is not None and it.extent > 1:
                inside.append(it)
            elif it.name in remainders:
                state, (_, part) = state.split(name, it, (periods_of[it.name],))
                inside.append(part)
        names = frozenset(it.name for it in inside)
        if not names:
            return state, names
        others = [it for it in state.stage(name).iters if it.name not in names]
        state = state.reorder(name, [*others, *inside])
        for it in inside:
            state = state.unroll(name, it.name)
        return state, names

    def _row_vectors(self, state: State, stage: Stage, outer: Sequence[Iter]) -> tuple[int, ...]:
        """Numbers of elements a thread may compute at once.

        (1,) if a loop sums, or hosts stages other than sums of which each element is used once.
        """
        is_plain = len(outer) == len(stage.iters) and all(
            made.compute.reduce_axes and not made.relations and reads_in_place(state, stage, made)
            for made in state.members(stage)
        )
        return self._vectors(stage) if is_plain and self.untiled_threads else (1,)

    def _fetch_together(self, state: State, name: str, constraints: list[Constraint]) -> State:
        stage = state.stage(name)
        assert stage.attach is not None, name
        reader = state.stage(stage.attach.stage)
        kernel = state.root_of(reader)
        by_warps = kernel.kernel_style in (KernelStyle.TENSOR_CORES, KernelStyle.ROWS_IN_WARPS)
        vectors = self._vectors(stage, by_warps)
        number = OneOf(vectors) if len(vectors) > 1 else vectors[0]
        state, (row, vector) = state.split(name, stage.iters[-1], (number,))
        state = state.vectorize(name, [vector])
        if len(vectors) > 1:
            constraints.append(_whole_vectors(state.stage(name)))
        outer = [*stage.iters[:-1], row]
        near = _contiguous(stage)
        if near is not None:
            outer, inner = [*(it for it in outer if it is not near), near], [vector]
            words = WORD // stage.op.dtype.bytes
            if words > 1 and near.extent is not None and near.extent % words == 0:
                state, (outer[-1], across) = state.split(name, near, (words,))
                state, inner = state.unroll(name, across), [across, vector]
            state = state.reorder(name, [*outer, *inner])
        state, fused = state.fuse(name, outer)
        if kernel.kernel_style is KernelStyle.ROWS:
            return _bind_rows(state, name, fused, thread_sources(kernel))
        tiled = warp_sum(state, kernel) if by_warps else reader
        sources = [(tiled.name, relation.parent) for relation in space_splits(tiled)]
        if by_warps:
            return _bind_warps(state, name, fused, sources, team_of(tiled))
        state, (_, thread) = state.follow_fused_split(name, fused, sources, 1)
        return state.bind(name, thread, THREAD)

    def _vectors(self, stage: Stage, narrow: bool = False) -> tuple[int, ...]:
        """The vector widths, in elements, that divide rows of *stage*.

        With *narrow*, ``vectors`` counts 4-byte words.
        """
        last = stage.op.shape[-1] if stage.op.shape else 1
        words = WORD // stage.op.dtype.bytes if narrow else 1
        return tuple(n for n in sorted({1, *(n * words for n in self.vectors)}) if last % n == 0)


def _contiguous(tile: Stage) -> Iter | None:
    """The loop of a transposed tile along which its source is contiguous; None if not transposed.

    Neighbouring threads then read neighbouring elements, and write vectors across them.
    """
    if not tile.swizzle:
        return None
    *_, across, last = tile.compute.axes
    near = nearest_axis(tile.compute.body, (last, across), last)
    return None if near is last else tile.iter(near.name)


def _sum_vectors(state: State, name: str, row: Iter) -> State:
    """Compute the sums in a loop of stage *name* for a whole vector in loop *row*.

    Each step adds to all of them, so that one load reads the operands of neighbours.
    """
    for made in state.attached(name):
        state = state.compute_at(made.name, name, row)
        space = made.space_iters
        state = state.reorder(made.name, [*made.reduce_iters, *space])
        for it in space[:-1]:
            state = state.unroll(made.name, it)
        state = state.vectorize(made.name, space[-1:])
    return state


def _bind_warps(
    state: State, name: str, fused: Iter, sources: Sequence[tuple[str, str]], team: int
) -> State:
    """Distribute a loop over the lanes of all teams of a block."""
    state, (rest, lanes) = state.split(name, fused, (team,))
    state, (_, warps) = state.follow_fused_split(name, rest, sources, 0)
    state, (y, x) = state.split(name, lanes, (ALONG_X,))
    for it, index in ((warps, ForKind.THREAD_Z), (y, ForKind.THREAD_Y), (x, ForKind.THREAD_X)):
        state = state.bind(name, it, index.value)
    return state


def _bind_rows(
    state: State, name: str, fused: Iter, grid: Mapping[ForKind, tuple[str, str]]
) -> State:
    """Distribute a loop over the lanes of all thread rows of a block."""
    rest = fused
    for index in (ForKind.THREAD_X, ForKind.THREAD_Y):
        if index in grid:
            state, (rest, thread) = state.follow_split(name, rest, grid[index], 1)
            state = state.bind(name, thread, index.value)
    return state


def _bind_blocks(state: State, name: str) -> State:
    outer, _ = parallel_prefix(state, state.stage(name))
    if not outer:
        return state
    state, fused = state.fuse(name, outer)
    return state.bind(name, fused, BLOCK)


def _bind_levels(state: State, name: str) -> State:
    splits = space_splits(state.stage(name))
    for level, index in enumerate(BOUND_LEVELS):
        members = {relation.children[level] for relation in splits}
        iters = [it for it in state.stage(name).iters if it.name in members]
        state, fused = state.fuse(name, iters)
        state = state.bind(name, fused, index)
    return state


def _limits(kernel: Stage, target: Target) -> list[Constraint]:
    """Constraints on the open numbers of threads and virtual threads of *kernel*."""
    name, most = kernel.name, target.max_threads_per_block
    match kernel.kernel_style:
        case KernelStyle.THREAD_TILES:
            least = _least_threads(kernel, target)
            return [
                _between(f"{name}.vthreads", vthread_factors(kernel), 1, target.max_vthread),
                _between(f"{name}.threads", thread_factors(kernel), least, most),
            ]
        case KernelStyle.ROWS:
            threads = threads_in_rows(kernel)
            return [_between(f"{name}.threads", threads, target.warp_size, most)]
        case _:
            return []


def _whole_vectors(tile: Stage) -> Constraint:
    """The constraint that a tile's rows are whole vectors, so that no vector spans two rows."""

    def holds(bounds: Bounds) -> Size:
        row, vector = bounds.region(tile.name)[-1].extent, bounds.number(copy_width(tile))
        return at_most(vector - size_gcd(row, vector), 0)

    return Constraint(f"{tile.name}.vectors", holds)


def _least_threads(stage: Stage, target: Target) -> int:
    """The least threads of a block: a warp, or 1 if there is work for two warps at most (TVM)."""
    return target.warp_size if stage.op.size > 2 * target.warp_size else 1


def _between(name: str, factors: Product, least: int, most: int) -> Constraint:
    def holds(bounds: Bounds) -> Size:
        size = bounds.number(factors)
        return above(size, least - 1) - above(size, most)

    return Constraint(name, holds)
