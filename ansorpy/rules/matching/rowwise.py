"""Conditions for definitions that pass over data once: normalisations, softmax, row sums."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from ansorpy.codegen.vectors import lanes_of
from ansorpy.ir.analysis.access import Access, accesses, reads
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Call, Expr, Function, walk
from ansorpy.ir.tensor import Tensor
from ansorpy.rules.matching.relations import has_reduce_iters, is_input
from ansorpy.rules.predicates import is_product, is_strictly_inlineable, reduce_extent
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.size import product
from ansorpy.target import Target

__all__ = [
    "at_block", "block_axes", "contiguous_reduction", "fills_lanes",
    "is_costly_broadcast", "is_evaluated_once", "passes_once", "streams", "with_cheap_inlined",
]  # fmt: skip

_COSTLY = frozenset({
    Function.EXP, Function.LOG, Function.SQRT, Function.RSQRT, Function.TANH, Function.ERF,
    Function.SIN, Function.COS,
})  # fmt: skip
"""Calls whose results are worth keeping, as are those of divisions and powers."""


def streams(state: State, stage: Stage) -> bool:
    """Whether the stage uses each element of its largest input about once, so tiles gain nothing.

    This holds for elementwise stages, row sums and norms, but not for matrix products and windows.
    A vector times a constant matrix does not count either: tiling allows packing the matrix, which
    is then read from memory sequentially.
    """
    op = stage.compute
    if not op.reduce_axes:
        return True
    largest = max(state.current_dag.reads(op), key=lambda producer: producer.size, default=None)
    if largest is None or largest in state.current_dag.constant_ops:
        return False
    return op.size * reduce_extent(stage) <= largest.size


def passes_once(state: State, stage: Stage) -> bool:
    """Whether the stage streams and is not a product; products have rules of their own."""
    return streams(state, stage) and not is_product(state, stage)


def with_cheap_inlined(
    state: State, last: Stage, apart: Container[Tensor] = ()
) -> tuple[State, list[str]]:
    """*state* with cheap stages inlined, and the stages that remain to be placed, last first.

    The stages of operators *apart* are left out.
    """
    members = []
    for stage in reversed(state.stages):
        given = stage.is_placeholder or stage.op in state.current_dag.constant_ops
        if given or stage is last or stage.op in apart:
            continue
        if _is_worth_inlining(state, stage):
            state = state.compute_inline(stage.name)
        else:
            members.append(stage.name)
    return state, members


def is_evaluated_once(state: State, stage: Stage) -> bool:
    """Whether inlining evaluates no element twice: one reader uses each once, in one load."""
    if state.current_dag.is_output(stage.op):
        return False
    inlined = state.inlined_dag
    readers = inlined.readers.get(stage.name, ())
    if len(readers) != 1:
        return False
    found = reads(inlined.ops[readers[0]], stage.op)
    return len(found) == 1 and _is_permutation(found[0])


def _is_permutation(access: Access) -> bool:
    """Whether each index is a different axis of the reader, and no axis is left out."""
    used = [shift.axis for shift in access.shifts if shift is not None and shift.axis is not None]
    every = {axis for axis in access.axes if axis.extent > 1}
    return None not in access.shifts and len(set(used)) == len(used) and set(used) == every


def _is_worth_inlining(state: State, stage: Stage) -> bool:
    """Whether recomputing the stage's value at each read costs no more than keeping it.

    Costly values are kept if they would be evaluated several times: if two stages read them, or
    if there is one per row and every element of the row reads it.
    """
    if is_input(state, stage) or state.current_dag.is_output(stage.op) or has_reduce_iters(stage):
        return False
    if is_evaluated_once(state, stage):
        return True
    return not _is_costly(stage.compute.body) and is_strictly_inlineable(state, stage)


def is_costly_broadcast(state: State, stage: Stage) -> bool:
    """Whether the stage's values are costly and every reader has more elements than the stage."""
    inlined = state.inlined_dag
    readers = [inlined.ops[name] for name in inlined.readers.get(stage.name, ())]
    larger = bool(readers) and all(op.size > stage.op.size for op in readers)
    return larger and _is_costly(inlined.ops[stage.name].body)


def _is_costly(body: Expr) -> bool:
    slow = (BinaryOp.DIV, BinaryOp.POW)
    return any(
        (isinstance(e, Call) and e.fn in _COSTLY) or (isinstance(e, Binary) and e.op in slow)
        for e in walk(body)
    )


def block_axes(state: State, last: Stage, members: list[str]) -> tuple[str, ...]:
    """Axes of *last* whose blocks need disjoint parts of all *members*, in axis order.

    For a softmax over the last axis, these are all other axes.  An axis does not count if the parts
    overlap (rows under a window) or every block needs the whole member (a sum over the axis).
    """
    found = [
        axis.name
        for axis in last.compute.axes
        if axis.extent > 1 and _parts_are_disjoint(state, last, members, [axis.name])
    ]
    return tuple(found) if _parts_are_disjoint(state, last, members, found) else ()


def _parts_are_disjoint(state: State, last: Stage, members: list[str], outer: list[str]) -> bool:
    """Whether the members' regions over all iterations of loops *outer* add up to their sizes."""
    if not outer:
        return True
    bounds = Bounds(at_block(state, last.name, outer, members), {})
    blocks = prod(last.root_extents[name] for name in outer)
    for member in members:
        box = product(span.extent for span in bounds.region(member))
        if box * blocks != state.stage(member).op.size:
            return False
    return True


def at_block(state: State, last: str, loops: Sequence[str], members: Sequence[str]) -> State:
    """*state* with *loops* outermost in stage *last*, and *members* computed in the last of them.

    Only the order of space loops changes.
    """
    others = [it.name for it in state.stage(last).space_iters if it.name not in loops]
    state = state.reorder(last, [*loops, *others])
    for member in members:
        state = state.compute_at(member, last, loops[-1])
    return state


def contiguous_reduction(state: State, stage: Stage) -> tuple[str, ...]:
    """The longest suffix of the reduce axes along which the stage reads memory in order.

    Every read indexed by these axes is contiguous: the last axis steps through the innermost
    dimension, and each axis before it continues where a run of the next one ends.
    """
    op = state.inlined_dag.ops[stage.name]
    if any(None in access.terms for access in accesses(op)):
        return ()
    reading = [
        (access.tensor, [dict(terms[0]) for terms in access.terms if terms is not None])
        for access in accesses(op)
    ]
    found: list[Axis] = []
    for axis in reversed(op.reduce_axes):
        steps = [_steps(t, terms, axis, found) for t, terms in reading]
        if not all(steps) or not any(axis in form for _, terms in reading for form in terms):
            break
        found.insert(0, axis)
    return tuple(axis.name for axis in found)


def fills_lanes(state: State, stage: Stage, axes: tuple[str, ...], target: Target) -> bool:
    """Whether the reduce *axes* together are longer than a quarter of a vector of *target*."""
    length = prod(stage.root_extents[axis] for axis in axes)
    return bool(axes) and length * 4 > lanes_of(state.inlined_dag.ops[stage.name], target)


def _steps(tensor: Tensor, terms: list[dict[Axis, int]], axis: Axis, inner: list[Axis]) -> bool:
    """Whether a step of *axis* moves the read by exactly the elements that *inner* covers.

    Also True if neither *axis* nor *inner* moves it.
    """
    moved = [d for d, form in enumerate(terms) if axis in form]
    run = prod(a.extent for a in inner)
    if not moved:
        return not any(a in form for a in inner for form in terms)
    if len(moved) > 1 or terms[moved[0]][axis] != 1:
        return False
    behind = tensor.shape[moved[0] + 1 :]
    covers = all(any(a in form for form in terms) for a in inner)
    return prod(behind) == run and covers
