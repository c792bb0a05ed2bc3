"""GPU kernels that compute all their stages at blocks of rows of the last stage.

``threadIdx.y`` selects a row of the block, ``threadIdx.x`` (the lane) a part of that row.  All
stages of a kernel have the same number of each, whatever the extents of their own loops, so that
every thread reaches every barrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.matching.relations import has_reduce_iters
from ansorpy.rules.matching.rowwise import at_block, block_axes
from ansorpy.rules.tiling.levels import reduce_in_one
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.bounds.spans import Part
from ansorpy.schedule.decisions import OneOf, Product, columns_of
from ansorpy.schedule.stage import Iter, KernelStyle, SplitRelation, Stage
from ansorpy.schedule.state import State

__all__ = ["RowKernel", "RowBlock", "is_single", "row_kernel", "thread_sources", "threads_in_rows"]

BLOCK, ROWS, LANES = ForKind.BLOCK_X, ForKind.THREAD_Y, ForKind.THREAD_X

CHOICES = {ROWS: (1, 2, 4, 8, 16, 32), LANES: (8, 16, 32, 64, 128, 256, 512, 1024)}
"""Allowed numbers of rows and lanes: powers of two, so that no row straddles two warps.

The lanes of a short row then exchange values within one warp.
"""

LEAST_LANES = 32
"""The number of lanes that is allowed even if rows are shorter: a warp."""

MOST_TOGETHER = 8
"""Most rows, and adjacent elements of a row, that a thread computes at once."""

VIRTUAL = (1, 2, 4)
"""Numbers of virtual threads among which a thread's part of a row may be divided.

Adjacent lanes then read adjacent elements.
"""

Source = tuple[str, str]
"""A stage, and the loop of that stage that was split."""


@dataclass(frozen=True)
class RowKernel:
    """The stages and axes of a kernel made of blocks of rows.

    Args:
        last: The stage whose blocks of rows are the kernel's.
        members: The stages computed there, producers first.
        blocks: Axes of *last* that split all members into disjoint parts.
        row: The axis in *blocks* along which a block has several elements; None if there is none.
        longest: Elements of the longest row.
        across: Whether lanes select rows and ``threadIdx.y`` a part of each row, not vice versa.
    """

    last: str
    members: tuple[str, ...]
    blocks: tuple[str, ...]
    row: str | None
    longest: int
    across: bool = False

    @property
    def kinds(self) -> tuple[ForKind, ForKind]:
        """The thread dimension that selects rows, and the one that shares a row."""
        return (LANES, ROWS) if self.across else (ROWS, LANES)


class RowBlock:
    """Builds the loops of *kernel*, stage by stage.

        for b, i.0.0:                 # blockIdx.x
          for i.0, j.0:               # of each member
            for i.1, j.1: ...         # threadIdx.y, threadIdx.x
          for j.0.0:
            for i.0.1, j.0.1:         # threadIdx.y, threadIdx.x
              for i.1, j.1: last      # a thread's own tile

    Stages are placed from last to first, because the region of a stage that a block needs follows
    from its readers.  With ``across`` (results are contiguous across rows, summed elements are
    not), rows and lanes swap: adjacent lanes read adjacent elements, and the threads along
    ``threadIdx.y`` share each sum.
    """

    def __init__(self, state: State, kernel: RowKernel):
        self.state = state
        self.kernel = kernel
        self.host = ""
        """The loop over blocks."""
        self._sources: dict[ForKind, Source] = {}

    def tile_last(self, *, own_rows: bool = False) -> str:
        """Split and bind the loops of the last stage; returns its innermost thread loop."""
        name, kernel = self.kernel.last, self.kernel
        axes = [axis.name for axis in self.state.stage(name).compute.axes]
        columns = [axis for axis in axes if axis not in kernel.blocks]
        row, inner = self._arrange(name, kernel.row, columns, own_rows=own_rows)
        others = [axis for axis in kernel.blocks if axis != kernel.row]
        first = [*others, *row]
        rest = [it.name for it in self.state.stage(name).iters if it.name not in first]
        self.state = self.state.reorder(name, [*first, *rest])
        self._bind_blocks(first)
        return inner

    def place(self, name: str, *, own_rows: bool = False) -> str:
        """Compute member *name* at the blocks; returns its innermost thread loop."""
        last = self.kernel.last
        self.state = self.state.compute_at(name, last, self.host)
        row = None if self.kernel.row is None else _row_of(self.state, name, self.kernel.row)
        axes = [axis.name for axis in self.state.stage(name).compute.axes]
        columns = [axis for axis in axes if axis != row]
        _, inner = self._arrange(name, row, columns, own_rows=own_rows)
        return inner

    def tile_single(self) -> None:
        """Like :meth:`tile_last` for rows of one element, which all threads of a block divide."""
        name, kernel = self.kernel.last, self.kernel
        assert kernel.row is not None
        outer, own = self._own(name, kernel.row)
        rest, rows = self._spread(name, outer, kernel.kinds[0])
        part, lanes = self._spread(name, own, kernel.kinds[1])
        others = [axis for axis in kernel.blocks if axis != kernel.row]
        first = [*others, rest.name]
        named = [*first, part.name, rows.name, lanes.name]
        single = [it.name for it in self.state.stage(name).iters if it.name not in named]
        self.state = self.state.reorder(name, [*first, *single, *named[len(first) :]])
        self._bind_blocks(first)

    def _bind_blocks(self, first: Sequence[str]) -> None:
        """Bind the outermost loops of the last stage to blocks."""
        name = self.kernel.last
        self.state, fused = self.state.fuse(name, first)
        self.state = self.state.bind(name, fused, BLOCK.value)
        self.state = self.state.set_kernel_style(name, KernelStyle.ROWS.value)
        self.host = fused.name

    def _arrange(
        self, name: str, row: str | None, columns: Sequence[str], *, own_rows: bool
    ) -> tuple[list[str], str]:
        """Distribute rows of stage *name*, and parts of them (columns or summands), to threads.

        Returns the loop around a thread's rows, if any, and the innermost thread loop.
        """
        rows: list[Iter] = []
        own: list[Iter] = []
        around: list[Iter] = []
        if row is not None:
            loop: Iter | str = row
            if own_rows:
                loop, *own = self._own_rows(name, row)
            rest, thread = self._spread(name, loop, self.kernel.kinds[0])
            around, rows = [rest], [thread]
        is_sum = has_reduce_iters(self.state.stage(name))
        lanes, parts, near = self._lanes(name, columns, is_sum=is_sum)
        if own and lanes and not is_sum and name != self.kernel.last:
            parts = self._virtual(name, parts[0])
        # In a sum, the loop over rows encloses the whole reduction, the one over lanes a part.
        inner = [*rows, *parts, *lanes] if is_sum else [*parts, *rows, *lanes]
        named = {it.name for it in (*around, *inner, *own, *near)}
        others = [it for it in self.state.stage(name).iters if it.name not in named]
        self.state = self.state.reorder(name, [*others, *around, *inner, *own, *near])
        for it in (*own, *near) if is_sum else own:
            self.state = self.state.unroll(name, it)
        if near and not is_sum:
            self.state = self.state.vectorize(name, near)
        return [it.name for it in around], inner[-1].name if inner else ""

    def _lanes(
        self, name: str, columns: Sequence[str], *, is_sum: bool
    ) -> tuple[list[Iter], list[Iter], list[Iter]]:
        """The loops of stage *name* over lanes, over the parts of each lane, and within a part."""
        if is_sum:
            self.state, loop = reduce_in_one(self.state, name)
        elif columns:
            loop = self.state.stage(name).iter(columns[-1])
        else:
            return [], [], []
        outer, *near = self._own(name, loop.name)
        rest, lane = self._spread(name, outer, self.kernel.kinds[1])
        return [lane], [rest], near

    def _virtual(self, name: str, parts: Iter) -> list[Iter]:
        """Compute several parts of a row in virtual threads, which share the values of the row."""
        self.state, (rest, virtual) = self.state.split(name, parts, (OneOf(VIRTUAL),))
        self.state = self.state.bind(name, virtual, ForKind.VTHREAD.value)
        return [rest, virtual]

    def _own_rows(self, name: str, row: str) -> tuple[Iter, ...]:
        """Split off the rows that a thread computes at once: as many as in the last stage."""
        last = self.kernel.last
        if name == last:
            return self._own(name, row)
        assert self.kernel.row is not None
        self.state, loops = self.state.follow_split(name, row, (last, self.kernel.row), 1)
        return loops

    def _own(self, name: str, loop: str) -> tuple[Iter, ...]:
        """Split off the elements that a thread computes at once."""
        is_sum = self.state.stage(name).iter(loop).kind is AxisKind.REDUCE
        self.state, loops = self.state.split(
            name, loop, (None,), max_innermost=MOST_TOGETHER, tail="guard" if is_sum else "cover"
        )
        return loops

    def _spread(self, name: str, loop: Iter | str, kind: ForKind) -> tuple[Iter, Iter]:
        """Bind the inner part of a loop to all the kernel's threads of *kind*."""
        if kind in self._sources:
            self.state, loops = self.state.follow_split(name, loop, self._sources[kind], 1)
        else:
            self._sources[kind] = name, loop if isinstance(loop, str) else loop.name
            number = OneOf(self._choices(name, kind))
            self.state, loops = self.state.split(name, loop, (number,), tail="whole")
        rest, thread = loops
        self.state = self.state.bind(name, thread, kind.value)
        return rest, thread

    def _choices(self, name: str, kind: ForKind) -> tuple[int, ...]:
        if kind is self.kernel.kinds[1]:
            most = self.kernel.longest
        else:
            assert self.kernel.row is not None
            most = self.state.stage(name).root_extents[self.kernel.row]
        most = max(most, LEAST_LANES) if kind is LANES else most
        return tuple(n for n in CHOICES[kind] if n < 2 * most)


def row_kernel(
    state: State, last: str, members: Sequence[str], sums: Sequence[str], rows: Set[str]
) -> RowKernel | str:
    """The kernel of *last* with *members*, or the reason why there is none.

    Args:
        sums: Further stages, computed inside loops of *last* or *members*.
        rows: Axes of *last* along which a block may have several elements.
    """
    blocks = block_axes(state, state.stage(last), [*members, *sums])
    if not blocks:
        return f'no block of "{last}" needs only a part of every producer'
    axes = {axis.name: axis.extent for axis in state.stage(last).compute.axes}
    row = next((axis for axis in reversed(blocks) if axis in rows), None)
    longest = max(_row_length(state.stage(name), axes, blocks) for name in (*members, last))
    kernel = RowKernel(last, tuple(members), blocks, row, longest)
    if row is not None:
        placed = at_block(state, last, blocks, [*members, *sums])
        lacking = [name for name in members if _row_of(placed, name, row) is None]
        if lacking:
            return f'no axis of "{lacking[0]}" runs along the rows of a block'
    return kernel


def is_single(state: State, kernel: RowKernel) -> bool:
    """True when the last stage is not a sum and has one element per row."""
    last = state.stage(kernel.last)
    columns = [a for a in last.compute.axes if a.extent > 1 and a.name not in kernel.blocks]
    return not (columns or has_reduce_iters(last))


def _row_length(stage: Stage, axes: Mapping[str, int], blocks: Sequence[str]) -> int:
    """Elements of the stage, or steps of its sum, per row of a block."""
    op, rows = stage.compute, prod(axes[name] for name in blocks)
    return max(op.size // rows, prod(axis.extent for axis in op.reduce_axes), 1)


def _row_of(state: State, name: str, row: str) -> str | None:
    """The axis of *name*, placed at a block, that runs along axis *row* of the last stage."""
    columns = dict.fromkeys(columns_of(state.decisions), 1)
    spans = Bounds(state, columns).region(name)
    for axis, span in zip(state.stage(name).compute.axes, spans, strict=True):
        if span.origin is not None and span.origin.terms == ((Part(row), 1),):
            return axis.name
    return None


def thread_sources(kernel: Stage) -> dict[ForKind, Source]:
    """The splits that made the row and lane loops of *kernel*, whose style is ROWS.

    These loops keep their length even where an axis is shorter.
    """
    kinds = {it.name: it.annotation for it in kernel.iters}
    return {
        kinds[relation.children[-1]]: (kernel.name, relation.parent)
        for relation in kernel.relations
        if isinstance(relation, SplitRelation) and relation.tail == "whole"
        and kinds.get(relation.children[-1]) in (ROWS, LANES)
    }  # fmt: skip


def threads_in_rows(kernel: Stage) -> Product:
    """The threads per block of *kernel*, whose style is ROWS: rows times lanes."""
    parents = {loop for _, loop in thread_sources(kernel).values()}
    return tuple(
        factor
        for relation in kernel.relations
        if isinstance(relation, SplitRelation) and relation.parent in parents
        for factor in relation.factors[-1]
    )
