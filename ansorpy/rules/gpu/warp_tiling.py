"""Tiles of tensor-core kernels: blocks, teams, fragments of each team, lanes.

A team is a warp or a warpgroup, depending on the instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ansorpy.ir.analysis.access import reads
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.fragments import Digit, fragment_lanes, fragment_shape
from ansorpy.ir.intrinsics import intrinsic
from ansorpy.ir.loops import ForKind
from ansorpy.rules.gpu.mma_choice import MmaChoice
from ansorpy.rules.tiling.levels import space_splits
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.lowering.gpu.lane_loops import lane_index
from ansorpy.schedule.stage import Iter, Stage, Tail
from ansorpy.schedule.state import State

__all__ = [
    "Multiplied", "fill_by_lanes", "fill_by_matrices", "multiplied", "reduce_by_lanes",
    "team_of", "tile_for_warps", "tile_like_warps", "warp_factors", "warp_sum",
]  # fmt: skip

BLOCK, WARPS = ForKind.BLOCK_X.value, ForKind.THREAD_Z.value

STRIP = 8
"""Rows of blocks that run together: 132 blocks then read operands of about 8 rows and 16 columns.

Source: the default of Triton's matrix products (``GROUP_SIZE_M``).
"""

_Part = tuple[Iter, Digit | None]
"""A loop over one digit of an index within a fragment, or (None) over fragments."""


def warp_sum(state: State, kernel: Stage) -> Stage:
    """The sum that the warps of *kernel*, a tensor-core kernel, hold in their registers.

    Its operands are computed in its loops, which are no other sum's.
    """
    held = (s for s in state.attached(kernel) if s.fragment is not None and s.carried is None)
    return next(stage for stage in held if state.attached(stage))


def warp_factors(stage: Stage) -> Product:
    """The number of teams in a block, given the sum *stage* that they hold in registers."""
    return tuple(f for relation in space_splits(stage) for f in relation.factors[0])


def team_of(stage: Stage) -> int:
    """The number of lanes that together hold a fragment of the sum *stage*."""
    assert stage.fragment is not None, stage.name
    return fragment_lanes(stage.fragment)


class Multiplied(NamedTuple):
    """The stages of a product in fragments: its operands and their sum."""

    left: str
    right: str
    total: str


def multiplied(state: State, name: str, choice: MmaChoice) -> tuple[State, Multiplied]:
    """*state* with product *name* in fragments by *choice*."""
    rows, columns, depth = (axis.name for axis in (choice.rows, choice.columns, choice.depth))
    state = state.mma(name, choice.by.name, rows, columns, depth)
    at = state.index(name)
    return state, Multiplied(*(stage.name for stage in state.stages[at - 3 : at]))


def tile_for_warps(
    state: State, name: str, by: str, depth_axis: str, apart: Collection[str] = ()
) -> State:
    """Tile the sum *name* into blocks, warps, steps of the reduction and fragments.

        i, j, k   -->   i.0 j.0 | i.1 j.1 | k.0 | k.1 | i.2 j.2 | i.3 j.3 k.2 (one instruction)

    Axes along which fragments have extent 1 are tiled without a fragment level.  Those *apart*, of
    the parts of a reduction, have tiles of one, because each part reads operands of its own; tiles
    along *depth_axis* then divide a part if fragments do, so that none contains steps of the next.
    """
    stage = state.stage(name)
    assert stage.fragment is not None, name
    shape = fragment_shape(stage.fragment)
    thick = {axis.name: n for axis, n in zip(stage.compute.axes, shape, strict=True)}
    depth = intrinsic(by).pattern.reduce_axes[0].extent
    levels: list[list[Iter]] = [[] for _ in range(6)]
    for it in stage.iters:
        if it.kind is AxisKind.SPACE and thick[it.name] > 1:
            state, parts = state.split(name, it, (None, None, thick[it.name]), tail="whole")
            at: Sequence[int] = (0, 1, 4, 5)
        elif it.kind is AxisKind.SPACE:
            one = 1 if it.name in apart else None
            state, parts = state.split(name, it, (one, one), tail="cover")
            at = (0, 1, 4)
        elif it.name == depth_axis:
            divides = bool(apart) and it.extent is not None and it.extent % depth == 0
            tail: Tail = "guard" if divides else "whole"
            state, parts = state.split(name, it, (None, depth), tail=tail)
            at = (2, 3, 5)
        else:
            state, parts = state.split(name, it, (None,))
            at = (2, 3)
        for level, part in zip(at, parts, strict=True):
            levels[level].append(part)
    state = state.reorder(name, [it for level in levels for it in level])
    for it in levels[3]:
        state = state.unroll(name, it)
    return state.tensorize(name, levels[5][0], by)


def tile_like_warps(state: State, name: str, source: str) -> tuple[State, str]:
    """Tile and bind stage *name* like the sum *source* that it reads.

    Blocks are blockIdx.x, teams threadIdx.z, lanes threadIdx.y and threadIdx.x; each lane stores
    the elements it holds.  Also returns the loop at which to compute the sum.
    """
    sum_of = _axes_of_sum(state, name, source)
    digits = _digits(state.stage(source))
    blocks, warps, parts = list[Iter](), list[Iter](), list[_Part]()
    for it in state.stage(name).iters:
        axis = sum_of[it.name]
        state, (block, warp, rest) = state.follow_split(name, it, (source, axis), 2)
        blocks.append(block)
        warps.append(warp)
        state, found = _split_by_digits(state, name, rest, digits[axis])
        parts += found
    state, lane = _bind_lanes(state, name, [*blocks, *warps], parts)
    for iters, index, together in ((blocks, BLOCK, STRIP), (warps, WARPS, 1)):
        state, fused = state.fuse(name, iters, together)
        state = state.bind(name, fused, index)
    return state, lane


def fill_by_lanes(state: State, name: str) -> State:
    """Have each lane load the elements of operand *name* that it holds."""
    digits, parts = _digits(state.stage(name)), list[_Part]()
    for it in state.stage(name).iters:
        state, found = _split_by_digits(state, name, it, digits[it.name])
        parts += found
    state, _ = _bind_lanes(state, name, [], parts)
    return state


def reduce_by_lanes(state: State, name: str) -> State:
    """Have each lane reduce its part of the rows of *name*, which another reduction carries."""
    stage = state.stage(name)
    assert stage.carried is not None, name
    digits, parts = _digits(stage), list[_Part]()
    for it in stage.space_iters:
        state, found = _split_by_digits(state, name, it, digits[it.name])
        parts += found
    carried = len(stage.carried.loops)
    state, _ = _bind_lanes(state, name, stage.reduce_iters[:carried], parts, vectors=False)
    for it in stage.reduce_iters[carried:]:
        state = state.unroll(name, it)
    return state


def fill_by_matrices(state: State, name: str, by: str) -> State:
    """Have instruction *by* load whole fragments of operand *name* from shared memory."""
    shape = fragment_shape(intrinsic(by).fragments[0])
    outer, inner = list[Iter](), list[Iter]()
    iters = state.stage(name).iters
    for it, n in zip(iters, (*(1,) * (len(iters) - len(shape)), *shape), strict=True):
        if n == 1:
            outer.append(it)
            continue
        state, (tile, within) = state.split(name, it, (n,), tail="whole")
        outer.append(tile)
        inner.append(within)
    state = state.reorder(name, [*outer, *inner])
    for it in outer:
        state = state.unroll(name, it)
    return state.tensorize(name, inner[0], by)


def _split_by_digits(
    state: State, name: str, it: Iter, digits: Sequence[Digit]
) -> tuple[State, list[_Part]]:
    """Split a loop by the digits of its index in a fragment; the outermost is over fragments."""
    if not digits:
        return state, [(it, None)]
    extents = tuple(digit.extent for digit in digits)
    state, parts = state.split(name, it, extents, tail="whole")
    return state, list(zip(parts, (None, *digits), strict=True))


def _bind_lanes(
    state: State, name: str, outer: Sequence[Iter], parts: Sequence[_Part], *, vectors: bool = True
) -> tuple[State, str]:
    """Bind the loops over lanes, inside *outer*, with each lane's own elements innermost.

    Elements adjacent in a register come last, with *vectors* as a vector.  Also returns the
    innermost lane loop.
    """
    lanes = sorted(
        ((it, d) for it, d in parts if d is not None and d.lane), key=lambda part: -part[1].lane
    )
    near = [it for it, d in parts if vectors and d is not None and d.register == 1]
    far = [it for it, d in parts if d is None or (d.register and it not in near)]
    state = state.reorder(name, [*outer, *(it for it, _ in lanes), *far, *near])
    innermost = ""
    for index in dict.fromkeys(lane_index(digit) for _, digit in lanes):
        counted = [it for it, digit in lanes if lane_index(digit) is index]
        state, thread = state.fuse(name, counted)
        state, innermost = state.bind(name, thread, index.value), thread.name
    for it in far:
        state = state.unroll(name, it)
    return state.vectorize(name, near[-1:]) if near else state, innermost


def _digits(stage: Stage) -> dict[str, tuple[Digit, ...]]:
    """For each axis, the digits of its index in a fragment."""
    assert stage.fragment is not None, stage.name
    return {a.name: d for a, d in zip(stage.compute.axes, stage.fragment, strict=True)}


def _axes_of_sum(state: State, name: str, source: str) -> dict[str, str]:
    """The axes of the sum *source*, keyed by those of stage *name*, which reads it in place."""
    of = state.stage(source).compute
    access = reads(state.inlined_dag.ops[name], of)[0]
    return {
        index.name: axis.name
        for terms, axis in zip(access.terms, of.axes, strict=True)
        for index in (() if terms is None else terms[0])
    }
