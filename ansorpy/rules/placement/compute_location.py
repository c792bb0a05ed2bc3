"""Draw the compute locations of stages that no sketch rule placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import PlacementRule, Subject
from ansorpy.rules.matching.relations import (
    is_input,
    is_operand_copy,
    is_tiled,
    single_consumer,
)
from ansorpy.rules.predicates import has_data_reuse, is_computed_where_read
from ansorpy.schedule.decisions import columns_of
from ansorpy.schedule.stage import Attach, Iter, SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.schedule.tables.nest import build_nest
from ansorpy.target import Target

__all__ = [
    "ChangeComputeLocation", "is_movable", "locations",
]  # fmt: skip


Place: TypeAlias = Attach | Literal["root"]


@dataclass(frozen=True)
class ChangeComputeLocation(PlacementRule[Place]):
    """Compute each untiled stage at the root or at a loop of its consumer, at random.

    The choice is uniform over the candidate loops and the root, which counts twice.  A stage that a
    sketch rule attached stays there.
    Source: TVM's InitChangeComputeLocation, whose other choice, "inline if it is attached, else
    unchanged", also leaves these stages at the root.  Differs: it runs before sizes are drawn, so a
    loop counts as extent 1 only if it has that extent in every row.
    """

    def subjects(self, state: State) -> list[Subject]:
        """The stages that no sketch rule attached, consumers first."""
        return [stage.name for stage in reversed(state.stages) if stage.attach is None]

    def options(self, state: State, subject: Subject, target: Target) -> tuple[Place, ...]:
        stage = state.stage(subject)
        if not is_movable(state, stage):
            return ()
        return ("root", "root", *locations(state, stage))

    def take(self, state: State, subject: Subject, option: Place) -> State:
        if not isinstance(option, Attach):
            return state
        moved = state.compute_at(state.stage(subject).name, option.stage, option.iter)
        return moved if is_computed_where_read(moved) else state


def is_movable(state: State, stage: Stage) -> bool:
    """Whether the stage may move: it is not an input, inlined or tiled, and has no data reuse."""
    fixed = is_input(state, stage) or stage.inlined or is_tiled(stage)
    return not fixed and not has_data_reuse(state, stage)


def locations(state: State, stage: Stage) -> tuple[Attach, ...]:
    """Loops at which *stage* may be computed: its consumer's, then those of the consumer's host.

    Paper: TVM's ``GetComputeLocationCandidates``.
    """
    target = single_consumer(state, stage)
    if target is None or state.current_dag.is_output(stage.op):
        return ()
    found = [Attach(target.name, it.name) for it in _in_consumer(state, target)]
    if target.attach is not None:
        outer = state.stage(target.attach.stage)
        found += [Attach(outer.name, it.name) for it in _in_outer(state, outer)]
    if is_operand_copy(stage):
        used = _reused_inside(state, stage, target)
        found = [at for at in found if (at.stage, at.iter) in used]
    return tuple(found)


def _reused_inside(state: State, stage: Stage, target: Stage) -> set[tuple[str, str]]:
    """The loops around *target*'s statement inside which a copy of a part of *stage* is re-read.

    Inner loops outside the register tile re-read the copy.  In other loops, it would be read only
    once, or made too often.
    """
    columns = dict.fromkeys(columns_of(state.decisions), 1)
    [leaf] = [x for x in build_nest(state, columns).leaves if x.stage == target.name]
    moves = [False] * len(leaf.loops)
    for access in (a for a in leaf.accesses if a.buffer == stage.name):
        for coefs in access.coefs:
            moves = [m or c != 0 for m, c in zip(moves, coefs, strict=True)]
    reduce = [n for n, loop in enumerate(leaf.loops) if loop.kind is AxisKind.REDUCE]
    tile = reduce[-1] if reduce else len(leaf.loops)
    again = [n for n, loop in enumerate(leaf.loops[:tile]) if not moves[n] and n not in reduce]
    return {
        (loop.stage, loop.name)
        for n, loop in enumerate(leaf.loops)
        if moves[n] and any(m > n for m in again)
    }


def _in_consumer(state: State, target: Stage) -> list[Iter]:
    hosts, outermost = state.host_iters(target), _outermost_parts(target)
    found: list[Iter] = []
    reduced = False
    for it in target.iters:
        space = it.kind is not AxisKind.REDUCE
        if it.annotation is ForKind.UNROLLED or (space and reduced):
            break
        if not space and not is_tiled(target):
            break
        reduced = reduced or not space
        if it.extent == 1:
            continue
        if target.attach is not None and space and it.name in outermost:
            continue
        found.append(it)
        if it.name in hosts:
            break
    return found


def _in_outer(state: State, outer: Stage) -> list[Iter]:
    hosts = state.host_iters(outer)
    found: list[Iter] = []
    for it in outer.iters:
        if it.kind is AxisKind.REDUCE or it.annotation is ForKind.UNROLLED or it.name in hosts:
            break
        if it.extent != 1:
            found.append(it)
    return found


def _outermost_parts(stage: Stage) -> frozenset[str]:
    """The first part of each split, which has extent 1 in a stage computed inside another."""
    return frozenset(r.children[0] for r in stage.relations if isinstance(r, SplitRelation))
