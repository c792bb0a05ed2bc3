"""Producers and consumers in a state, looking through inlined stages."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.ir.expr import Load
from ansorpy.ir.tensor import ComputeOp, PlaceholderOp
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State

__all__ = [
    "consumers", "direct_producers", "has_reduce_iters", "is_input", "is_operand_copy",
    "is_tiled", "producers", "single_consumer", "widens",
]  # fmt: skip


def consumers(state: State, stage: Stage) -> tuple[Stage, ...]:
    """Stages that read *stage*, in stage order; an inlined reader is replaced by its readers.

    Paper: TVM's ``GetConsumers``.
    """
    return _past_inlined(state, stage, _readers)


def direct_producers(state: State, stage: Stage) -> tuple[Stage, ...]:
    """Stages that *stage*'s own definition reads, including inlined ones."""
    if not isinstance(stage.op, ComputeOp):
        return ()
    read = {producer.name for producer in state.current_dag.reads(stage.op)}
    return tuple(s for s in state.stages if s.name in read)


def producers(state: State, stage: Stage) -> tuple[Stage, ...]:
    """Stages that *stage* reads; an inlined producer counts as its own producers."""
    return _past_inlined(state, stage, direct_producers)


_Neighbours = Callable[[State, Stage], tuple[Stage, ...]]


def _past_inlined(state: State, stage: Stage, neighbours: _Neighbours) -> tuple[Stage, ...]:
    """The neighbours of *stage* in stage order; an inlined one is replaced by its neighbours."""
    seen: set[str] = set()
    todo = list(neighbours(state, stage))
    while todo:
        found = todo.pop()
        if found.name not in seen and found.inlined:
            todo.extend(neighbours(state, found))
        seen.add(found.name)
    return tuple(s for s in state.stages if s.name in seen and not s.inlined)


def _readers(state: State, stage: Stage) -> tuple[Stage, ...]:
    return tuple(state.stage(reader.name) for reader in state.current_dag.readers(stage.op))


def single_consumer(state: State, stage: Stage) -> Stage | None:
    """The only consumer, or the stage to which all other consumers are attached; else None.

    Paper: TVM's ``GetSingleConsumerId``.
    """
    readers = consumers(state, stage)
    if len(readers) == 1:
        return readers[0]
    hosts = {r.name if r.attach is None else r.attach.stage for r in readers}
    return state.stage(hosts.pop()) if len(hosts) == 1 else None


def widens(state: State, stage: Stage) -> bool:
    """Whether *stage* computes, element by element, with elements unpacked in each call."""
    todo, seen = [stage], {stage.name}
    while todo:
        top = todo.pop()
        if not isinstance(top.op, ComputeOp) or top.op.reduce_axes:
            continue
        if top.op.attrs.each_call:
            return True
        found = [other for other in direct_producers(state, top) if other.name not in seen]
        todo += found
        seen.update(other.name for other in found)
    return False


def is_input(state: State, stage: Stage) -> bool:
    """Whether *stage* is only read: a placeholder, or a stage computed at bind time."""
    return stage.is_placeholder or stage.op in state.current_dag.constant_ops


def is_tiled(stage: Stage) -> bool:
    """Whether the stage's number of loops differs from its operator's number of axes (TVM)."""
    return len(stage.iters) != len(stage.root_extents)


def is_operand_copy(stage: Stage) -> bool:
    """Whether the stage only copies an input into another layout; wasteful without reuse."""
    body = None if stage.is_placeholder else stage.compute.body
    return isinstance(body, Load) and isinstance(body.source, PlaceholderOp)


def has_reduce_iters(stage: Stage) -> bool:
    """Whether the stage has a reduce loop."""
    return bool(stage.reduce_iters)
