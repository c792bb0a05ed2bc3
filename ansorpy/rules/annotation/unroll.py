"""Open the unroll limits of reductions."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.relations import has_reduce_iters, is_input
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import FuseRelation, SplitRelation, Stage
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["AnnotateUnroll", "origins"]


@dataclass(frozen=True)
class AnnotateUnroll(AnnotationRule):
    """Open the unroll limit of every reduction; unroll the loops that the definition marks.

    Reductions of warps have no choice: loops over registers are always unrolled.

    Source: TVM's InitUnroll; ``max_steps`` has its candidates (on CUDA also 1024).  If it is empty,
    the generator decides (:mod:`ansorpy.codegen.cuda.passes.unroll_sums`).
    """

    max_steps: tuple[int, ...] = (0, 16, 64, 512)

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for stage in state.stages:
            if is_input(state, stage) or stage.inlined:
                continue
            state = _unroll_marked(state, stage)
            if has_reduce_iters(stage) and self.max_steps and stage.fragment is None:
                state = state.pragma_unroll(stage.name, OneOf(self.max_steps))
        return Space(state, space.constraints)


def _unroll_marked(state: State, stage: Stage) -> State:
    """Unroll the loops in the innermost tile that come from axes marked for unrolling."""
    marked = set(stage.compute.attrs.always_unroll_inner)
    seen: set[str] = set()
    for it in reversed(stage.iters) if marked else ():
        axes = origins(stage, it.name)
        if axes & seen:
            break
        seen |= axes
        if axes & marked and it.annotation is ForKind.SERIAL:
            state = state.unroll(stage.name, it)
    return state


def origins(stage: Stage, name: str) -> frozenset[str]:
    """The axes of the operator from which a loop was split or fused."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and name in relation.children:
            return origins(stage, relation.parent)
        if isinstance(relation, FuseRelation) and name == relation.child:
            return frozenset(a for parent in relation.parents for a in origins(stage, parent))
    return frozenset({name})
