"""The GPU kernel of attention in the registers of warps, with a running maximum of each row.

Each warp has some rows of the result.  Block by block of keys, it multiplies queries and keys, and
the exponentials with the values, on tensor cores; the scores, their maxima and sums stay in
fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ansorpy.ir.expr import Axis, Load, Reduce, walk
from ansorpy.ir.fragments import WARP, fragment_shape
from ansorpy.ir.intrinsics import QUADS, WGMMA, WGMMA_HELD, Intrinsic
from ansorpy.ir.operands import without_casts
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.algorithms.softmax import WeightedSum, find_weighted_sums
from ansorpy.rules.gpu.mma_choice import (
    WORTH,
    MmaChoice,
    matrix_dims,
    matrix_load,
    warp_choice,
)
from ansorpy.rules.gpu.warp_tiling import (
    Multiplied,
    fill_by_lanes,
    fill_by_matrices,
    multiplied,
    reduce_by_lanes,
    tile_like_warps,
)
from ansorpy.rules.sketch.add_cache_read import source_order, with_tiles
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.stage import Attach, Iter, KernelStyle
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Count

__all__ = ["WarpRows", "group_rows", "warp_rows", "with_warp_rows"]

WARPS = (2, 4, 8)
"""Numbers of warps in a block."""

ROW_TILES = (1, 2)
"""Fragments of rows that a warp has: more reuse each key and value, and take more registers."""

KEY_STEPS = (2, 4, 8)
"""Fragments of keys whose scores a warp holds at once."""

KEY_BLOCKS = (1, 2)
"""How many times as many keys are copied into shared memory at once."""

GROUPS = (1, 2, 3)
"""Numbers of warpgroups in a block, where these multiply; each has one fragment of rows."""

GROUP_KEYS = (64, 128)
"""Keys whose scores one instruction of a warpgroup adds to."""


@dataclass(frozen=True)
class WarpRows:
    """Attention whose products warps compute: the stages by their roles.

    ``scores`` and ``mixed`` are the products, ``first`` and ``second`` their instructions and axes.
    Those of warpgroups read all factors but the exponentials from shared memory.
    """

    state: State
    scores: str
    top: str
    raised: str
    total: str
    mixed: str
    first: MmaChoice
    second: MmaChoice

    @property
    def team(self) -> int:
        """The number of lanes that multiply together: those of a warp, or of a warpgroup."""
        return self.first.by.team


def warp_rows(state: State) -> WarpRows | str:
    """The kernel that the unscheduled *state* can become, or the reason why it cannot."""
    dag = state.current_dag
    found = find_weighted_sums(dag)
    if state.history or len(dag.outputs) != 1 or len(found) != 1:
        return "it is not one sum weighted by a softmax"
    (of,) = found
    sums = [op for op in dag.computes if op.reduce_axes and op not in dag.constant_ops]
    products = [op for op in sums if op not in (of.top, of.total, of.mixed)]
    if len(products) != 1 or products[0] not in dag.leading_to(of.raised):
        return "it has other sums than those of attention"
    (scores,) = products
    for stage in reversed(state.stages):
        elementwise = not stage.is_placeholder and not stage.compute.reduce_axes
        kept = stage.op is of.raised or stage.op in (*dag.outputs, *dag.constant_ops)
        if elementwise and not kept:
            state = state.compute_inline(stage.name)
    reason = _unsuited(state, of, scores)
    if reason is not None:
        return reason
    row, column = (axis.name for axis in scores.axes[-2:])
    first = warp_choice(scores, row, column)
    second = warp_choice(of.mixed, of.rows[-1].name, of.columns[0].name)
    if first is None or second is None or first.by is not second.by:
        return "no instruction multiplies such values"
    return WarpRows(
        state, scores.name, of.top.name, of.raised.name, of.total.name, of.mixed.name, first,
        second,
    )  # fmt: skip


def group_rows(plan: WarpRows) -> list[WarpRows]:
    """The kernels of warpgroups that compute the same as *plan*, by the keys they take at once."""
    second = _in_place_of(plan, plan.mixed, plan.second, WGMMA_HELD)
    found = list[WarpRows]()
    for keys in GROUP_KEYS:
        among = [by for by in WGMMA if by.pattern.shape[1] == keys]
        first = _in_place_of(plan, plan.scores, plan.first, among)
        if first is not None and second is not None and first.by.types == second.by.types:
            found.append(replace(plan, first=first, second=second))
    return found


def _in_place_of(
    plan: WarpRows, name: str, choice: MmaChoice, among: Sequence[Intrinsic]
) -> MmaChoice | None:
    """The best of *among* for product *name*; None if it wastes much more work than *choice*.

    Factors are stored in the order of the tensors that they are views of.
    """
    op = plan.state.inlined_dag.ops[name]
    found = warp_choice(op, choice.rows.name, choice.columns.name, among)
    return found if found is not None and found.waste <= choice.waste * WORTH else None


def _unsuited(state: State, of: WeightedSum, scores: ComputeOp) -> str | None:
    """Why rows of these stages cannot be those of fragments; None if they can."""
    axes, dag, inlined = of.raised.axes, state.current_dag, state.inlined_dag
    if of.key != len(axes) - 1 or len(axes) < 2 or of.raised in dag.outputs:
        return "keys are not the last axis of the scores"
    if without_casts(of.weight) is not of.read:
        return "the weights are divided before they are multiplied"
    if len(of.columns) != 1 or of.read.indices != (*of.rows, *of.mixed.reduce_axes):
        return "the product does not have the rows of the scores"
    for op, has_rows in ((of.top, _top_has_rows(of)), (of.total, _total_has_rows(of))):
        if not has_rows:
            return f'"{op.name}" does not have the rows of the scores'
    places = inlined.index_tuples(of.raised.name, scores.name)
    if any(tuple(indices[-2:]) != tuple(axes[-2:]) for indices in places):
        return "the scores are not used in place"
    readers = dag.readers(of.mixed)
    if len(readers) != 1 or dag.readers(of.total) != readers or readers[0].reduce_axes:
        return "the result is not the product divided by the sums"
    (reader,) = readers
    (mixed, *more), totals = dag.reads(reader)[of.mixed], dag.reads(reader)[of.total]
    if more or mixed[-1] is not reader.axes[-1] or set(totals) != {mixed[:-1]}:
        return "the result does not use the product in place"
    places = inlined.index_tuples(dag.outputs[0].name, of.mixed.name)
    if any(not isinstance(index, Axis) for indices in places for index in indices):
        return "the result does not use the product element by element"
    return None


def _top_has_rows(of: WeightedSum) -> bool:
    """Whether each exponential reads the maximum at its own row."""
    tops = (e for e in walk(of.raised.body) if isinstance(e, Load) and e.source is of.top)
    return all(load.indices == of.raised.axes[:-1] for load in tops)


def _total_has_rows(of: WeightedSum) -> bool:
    """Whether each sum is that of the row of exponentials at its own indices."""
    body = of.total.body
    assert isinstance(body, Reduce)
    read = without_casts(body.source)
    return isinstance(read, Load) and read.indices == (*of.total.axes, *body.axes)


def with_warp_rows(plan: WarpRows, *, shared: bool) -> State:
    """The state of *plan* with all stages in place.

    Warps keep their queries in registers, or with *shared* in shared memory, as warpgroups do.
    """
    made = _Kernel(plan)
    made.tile_sum()
    members = [made.top.lane, made.top.quad, made.total]
    state = made.state.carry(made.sum, made.blocks, members, made.top.quad)
    last = state.current_dag.outputs[0].name
    state, lane = tile_like_warps(state, last, made.sum)
    for name in dict.fromkeys((made.sum, *members, *(row.quad for row in made.rows))):
        state = state.compute_at(name, last, lane)
    state = state.compute_at(plan.raised, made.sum, made.blocks)
    state = fill_by_lanes(state, plan.raised)
    for row in made.rows:
        state = reduce_by_lanes(state, row.lane)
    for row in made.rows:
        state = _combined(state, row.quad, plan.team)
    made.state = state
    made.tile_total()
    made.place_scores(Attach(last, lane), shared=shared)
    return made.state.set_kernel_style(last, KernelStyle.ROWS_IN_WARPS.value)


class _InQuads(NamedTuple):
    """The stages that reduce a row in the lanes which share it: their parts, the combination."""

    lane: str
    quad: str


def _combined(state: State, name: str, team: int) -> State:
    """Have an instruction combine the parts of the lanes in stage *name*."""
    stage = state.stage(name)
    body = stage.compute.body
    assert isinstance(body, Reduce)
    by = QUADS[body.kind, team]
    *outer, row, lane, part = stage.iters
    state, (tile, rows) = state.split(name, row, (by.pattern.shape[0],), tail="whole")
    state = state.reorder(name, [*outer, tile, rows, lane, part])
    for it in (*outer, tile):
        state = state.unroll(name, it)
    return state.tensorize(name, rows, by.name)


class _Kernel:
    """Builds the loops of the kernel of *plan*, with products and reductions in fragments."""

    def __init__(self, plan: WarpRows):
        self.plan = plan
        self.state = plan.state
        self.in_groups = plan.first.by.asynchronous
        self.scores = self._multiply(plan.scores, plan.first)
        self.mixed = self._multiply(plan.mixed, plan.second)
        self.sum = self.mixed.total
        """The sum of the second product, whose loops over keys all stages share."""
        self.tiles = self.blocks = self.steps = ""
        """Its loops over keys: tiles in shared memory, blocks of scores, steps of the product."""
        self.state = self.state.hold(plan.raised, plan.first.by.name)
        self.top = self._reduce(plan.top)
        self.rows = [self.top]
        """What is reduced in quads: the maximum, and the sum of the exponentials if it is."""
        self.ones: Multiplied | None = None
        """The sum of the exponentials as a product with ones, if it is one."""
        if self.state.stage(plan.raised).op.dtype.bits != 16 or plan.team != WARP:
            self.rows.append(self._reduce(plan.total))
            self.total = self.rows[-1].lane
            """The carried sum of the exponentials."""
        else:
            self.ones = self._multiply_by_ones(plan.total)
            self.total = self.ones.total

    def _multiply(self, name: str, choice: MmaChoice) -> Multiplied:
        """Put product *name* into fragments by *choice*."""
        self.state, made = multiplied(self.state, name, choice)
        self.state = self.state.compute_inline(name)
        return made

    def _reduce(self, name: str) -> _InQuads:
        """Reduce rows of *name* in quads."""
        at = self.state.index(name)
        self.state = self.state.quads(name, team=self.plan.team)
        return _InQuads(self.state.stages[at].name, self.state.stages[at + 1].name)

    def _multiply_by_ones(self, name: str) -> Multiplied:
        """Sum rows of *name* as a product with ones."""
        at = self.state.index(name)
        self.state = self.state.ones(name)
        one, product = self.state.stages[at : at + 2]
        rows, columns, depth = (*product.compute.axes[-2:], *product.compute.reduce_axes)
        choice = replace(self.plan.second, rows=rows, columns=columns, depth=depth)
        made = self._multiply(product.name, choice)
        self.state = self.state.compute_inline(one.name)
        return made

    def tile_sum(self) -> None:
        """Tile the sum: blocks, warps, tiles of keys, blocks of scores, steps, fragments."""
        state, name, by = self.state, self.sum, self.plan.second.by
        m, n = fragment_shape(by.fragments[0])
        depth = by.pattern.reduce_axes[0].extent
        teams: tuple[Count, Count] = (OneOf(WARPS), OneOf(ROW_TILES))
        at_once: Count = OneOf(KEY_STEPS)
        if self.in_groups:
            teams, at_once = (OneOf(GROUPS), 1), self.plan.first.by.pattern.axes[1].extent // depth
        levels: list[list[Iter]] = [[] for _ in range(7)]
        *outer, row, column, key = state.stage(name).iters
        width = -(-column.extent // n) if isinstance(column.extent, int) else 1
        for it in outer:
            state, parts = state.split(name, it, (1, 1), tail="cover")
            self._spread(levels, (0, 1, 5), parts)
        state, parts = state.split(name, row, (*teams, m), tail="whole")
        self._spread(levels, (0, 1, 5, 6), parts)
        state, parts = state.split(name, column, (1, width, n), tail="whole")
        self._spread(levels, (0, 1, 5, 6), parts)
        factors = (OneOf(KEY_BLOCKS), at_once, depth)
        state, parts = state.split(name, key, factors, tail="whole")
        self._spread(levels, (2, 3, 4, 6), parts)
        self.tiles, self.blocks, self.steps = (it.name for it in parts[:3])
        state = state.reorder(name, [it for level in levels for it in level])
        state = state.unroll(name, self.steps)
        self.state = state.tensorize(name, levels[6][0], by.name)

    def tile_total(self) -> None:
        """Tile the sum of exponentials if it is a product with ones."""
        if self.ones is None:
            return
        state, name = self.state, self.total
        m, n = fragment_shape(self.plan.second.by.fragments[0])
        *outer, row, column = state.stage(name).space_iters
        keys = state.stage(name).reduce_iters
        state, (rows, within) = state.split(name, row, (m,), tail="whole")
        state, (columns, inner) = state.split(name, column, (n,), tail="whole")
        order = [*keys[:-1], *outer, rows, columns, within, inner, keys[-1]]
        state = state.reorder(name, order).unroll(name, keys[-2])
        self.state = state.tensorize(name, within, self.plan.second.by.name)
        for operand in (self.ones.left, self.ones.right):
            self._fill(operand, Attach(name, keys[-2].name))

    @staticmethod
    def _spread(levels: list[list[Iter]], at: Sequence[int], parts: Sequence[Iter]) -> None:
        for level, part in zip(at, parts, strict=True):
            levels[level].append(part)

    def place_scores(self, whole: Attach, *, shared: bool) -> None:
        """Place the first product in the loop over blocks of scores, and all operands.

        Queries are loaded once, at *whole*, or with *shared* from a tile that is made there.
        """
        plan, by = self.plan, self.plan.first.by
        queries, keys, scores = self.scores
        weights, values, _ = self.mixed
        state = self.state.compute_at(scores, self.sum, self.blocks)
        m, n = fragment_shape(by.fragments[0])
        depth = by.pattern.reduce_axes[0].extent
        *outer, row, column, inner = state.stage(scores).iters
        levels: list[list[Iter]] = [[], []]
        for it, size in ((inner, depth), (row, m), (column, n)):
            state, parts = state.split(scores, it, (size,), tail="whole")
            self._spread(levels, (0, 1), parts)
        step, *tiles = levels[0]
        deep, *fragment = levels[1]
        state = state.reorder(scores, [*outer, step, *tiles, *fragment, deep])
        state = state.unroll(scores, step)
        self.state = state.tensorize(scores, fragment[0], by.name)
        whole_steps = isinstance(inner.extent, int) and inner.extent % depth == 0
        by_step, by_tile = Attach(scores, step.name), Attach(self.sum, self.tiles)
        if self.in_groups:
            for name, at in ((queries, whole), (keys, by_tile), (values, by_tile)):
                self.state = self.state.compute_at(name, at.stage, at.iter)
            self._fill(weights, Attach(self.sum, self.blocks))
            return
        if shared:
            self._load(queries, by_step, plan.first.depth.name, whole)
        else:
            self._fill(queries, whole if whole_steps else by_step)
        self._load(keys, by_step, plan.first.depth.name, by_tile)
        self._fill(weights, Attach(self.sum, self.steps))
        self._load(values, Attach(self.sum, self.steps), plan.second.depth.name, by_tile)

    def _fill(self, operand: str, at: Attach) -> None:
        """Have each lane load what it holds of *operand*."""
        self.state = fill_by_lanes(self.state, operand).compute_at(operand, at.stage, at.iter)

    def _load(self, operand: str, at: Attach, depth: str, tile: Attach) -> None:
        """Load *operand* from a *tile* in shared memory, by matrices if rows allow it.

        Rows of the tiles are contiguous where those of the tensor in memory are.
        """
        state = self.state
        sources = [op.name for op in state.current_dag.reads(state.stage(operand).op)]
        orders = [source_order(state.stage(name)) for name in sources]
        by = matrix_load(state.stage(operand), depth, end=orders[0][-1] if orders[0] else None)
        if by is None:
            state = fill_by_lanes(state, operand)
        else:
            state = fill_by_matrices(state, operand, by.name)
            orders = [_matrix_last(state, operand, sources[0], orders[0])]
        state = state.compute_at(operand, at.stage, at.iter)
        for name, order in zip(sources, orders, strict=True):
            state = with_tiles(state, name, operand, order, tile)
        self.state = state


def _matrix_last(
    state: State, operand: str, source: str, order: tuple[int, ...]
) -> tuple[int, ...]:
    """*order* of the dimensions of *source*, with those of the matrix that *operand* loads last."""
    dims = matrix_dims(state.stage(operand))
    natural = tuple(range(state.stage(source).op.ndim))
    given = order or natural
    wanted = (*(d for d in given if d not in dims), *(d for d in given if d in dims))
    return () if wanted == natural else wanted
