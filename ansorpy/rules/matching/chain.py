"""Recognise chains: a product, the stages before it and the stages after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ansorpy.ir.analysis.access import reads
from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.expr import Axis
from ansorpy.ir.tensor import ComputeOp
from ansorpy.rules.matching.branches import periods
from ansorpy.rules.matching.packed import has_columns_of_its_own
from ansorpy.rules.matching.relations import has_reduce_iters, is_input
from ansorpy.rules.predicates import (
    has_data_reuse,
    is_repeated_in_tiles,
    is_strictly_inlineable,
)
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State

__all__ = ["Chain", "find_chain", "reused_axes"]


@dataclass(frozen=True)
class Chain:
    """A chain with its cheap stages inlined.

    Args:
        state: The state, with nothing tiled or placed yet.
        last: The output, which depends on every other member.
        product: The last stage that re-reads its inputs enough to need its own tiles.
        before: Members that do not depend on *product*, producers first.
        after: The members between *product* and *last*.
    """

    state: State
    last: str
    product: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@lru_cache(maxsize=8)
def find_chain(state: State, end: str | None = None) -> Chain | str:
    """The chain that the unscheduled *state* forms, or the reason why it forms none.

    With *end*, it is the chain that leads to this stage, which need not be the output; the stages
    after it may be scheduled already.  A rule's two methods ask for the chain of the same state.
    """
    if end is None and state.history:
        return "the stages are being scheduled already"
    if len(state.current_dag.outputs) != 1:
        return "there are several outputs"
    end = state.current_dag.outputs[0].name if end is None else end
    state = _inline_cheap(state, end)
    members = _members(state, end)
    products = [
        s for s in members
        if has_data_reuse(state, s) and not has_columns_of_its_own(s.compute)
    ]  # fmt: skip
    if not products:
        return "no stage re-reads its inputs enough to be the product of a chain"
    product, last = products[-1], members[-1]
    if product is last:
        # Accumulate its tiles in a local buffer and copy them, so that the result is stored once.
        state, name = state.cache_write(last.name, "local")
        members, product = _members(state, last.name), state.stage(name)
        last = members[-1]
    downstream = _depending_on(state, product)
    before = tuple(s for s in members if s is not product and s.name not in downstream)
    if all(axis.extent == 1 for axis in last.compute.axes):
        return "the result is a single element"
    placed = bool(periods(state.inlined_dag.ops[last.name]))
    if not placed and not any(_computes(state, s) for s in before):
        return f'"{product.name}" reads no computed stage'
    after = tuple(s for s in members if s is not last and s.name in downstream)
    return Chain(
        state, last.name, product.name,
        tuple(s.name for s in before), tuple(s.name for s in after),
    )  # fmt: skip


def _members(state: State, end: str) -> list[Stage]:
    """The stages with loops that lead to *end*, and *end* itself, producers first."""
    leading = state.current_dag.leading_to(state.stage(end).op)
    return [s for s in state.stages if not (is_input(state, s) or s.inlined) and s.op in leading]


def _inline_cheap(state: State, end: str) -> State:
    """Inline stages before *end* that cost nothing to recompute or are read once, last first."""
    for name in [s.name for s in reversed(_members(state, end)) if s.name != end]:
        stage = state.stage(name)
        if state.current_dag.is_output(stage.op) or has_reduce_iters(stage):
            continue
        if is_repeated_in_tiles(state, stage):
            continue
        if is_strictly_inlineable(state, stage) or _is_read_once(state, stage):
            state = state.compute_inline(name)
    return state


def _is_read_once(state: State, stage: Stage) -> bool:
    """Whether one stage reads *stage*, in one load that reads no element twice."""
    readers = [r for r in state.current_dag.readers(stage.op) if isinstance(r, ComputeOp)]
    if len(readers) != 1:
        return False
    (reader,) = readers
    found = reads(reader, stage.op)
    summed = any(axis.extent > 1 for axis in reader.reduce_axes)
    return len(found) == 1 and not summed and found[0].is_once


def _computes(state: State, stage: Stage) -> bool:
    """Whether the stage does arithmetic worth keeping; False for copies and padding."""
    op = stage.compute
    if op.reduce_axes or is_repeated_in_tiles(state, stage):
        return True
    return any(len(reads) > 1 for reads in state.current_dag.reads(op).values())


def _depending_on(state: State, stage: Stage) -> set[str]:
    """Names of the stages that depend on *stage*."""
    dag, found = state.current_dag, {stage.name}
    for op in dag.computes:
        if any(read.name in found for read in dag.reads(op)):
            found.add(op.name)
    return found - {stage.name}


def reused_axes(state: State, last: str, product: str) -> frozenset[str]:
    """The axes of *last* along which *product* re-reads some operand."""
    inlined = state.inlined_dag
    op = inlined.ops[product]
    used = [
        {axis for index in indices for axis in axes_in(index)}
        for read in inlined.reads[product]
        for indices in read.indices
    ]
    (indices,) = inlined.index_tuples(last, product)
    pairs = zip(indices, op.axes, strict=True)
    return frozenset(
        e.name for e, axis in pairs if isinstance(e, Axis) and not all(axis in u for u in used)
    )
