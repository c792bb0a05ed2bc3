"""Steps that set where a stage is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import AxisKind
from ansorpy.schedule.stage import Attach, FuseRelation, SplitRelation, Stage
from ansorpy.schedule.steps.base import Step, compute_stage

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = ["ComputeAtStep", "ComputeInlineStep", "ComputeRootStep", "ReverseComputeAtStep"]


@dataclass(frozen=True)
class ComputeAtStep(Step):
    """Compute the box of *stage* that one iteration of *target*'s loop *iter* needs, inside it."""

    target: str
    iter: str
    kind: Literal["compute_at"] = "compute_at"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        target = compute_stage(state, self.target, self)
        target.iter(self.iter)
        if target.inlined:
            raise ScheduleError(
                f'"{target.name}" is inlined, so it has no loops',
                step=self.call(), stage=stage.name, program=state.text(),
                hint="compute it at a loop of the stage into which this one is inlined",
            )  # fmt: skip
        if stage is target or stage.op not in state.current_dag.leading_to(target.op):
            raise ScheduleError(
                f'"{target.name}" does not read "{stage.name}"',
                step=self.call(), stage=stage.name, program=state.text(),
                hint="compute a stage at a loop of one of its readers",
            )  # fmt: skip
        if state.current_dag.is_output(stage.op):
            raise ScheduleError(
                "an output must be computed as a whole",
                step=self.call(), stage=stage.name, program=state.text(),
            )  # fmt: skip
        return state.replace_stage(
            replace(stage, attach=Attach(target.name, self.iter), inlined=False)
        )


@dataclass(frozen=True)
class ReverseComputeAtStep(Step):
    """Compute *stage* inside *target*'s loop *iter*, right after the tile of *target* it reads.

    *stage* must read *target* element by element.  It takes over *target*'s splits; *target*
    is then computed at the matching loop, which gives the same program.
    """

    target: str
    iter: str
    kind: Literal["reverse_compute_at"] = "reverse_compute_at"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        target = compute_stage(state, self.target, self)
        outer = target.iters[: target.index(self.iter) + 1]
        reads = state.current_dag.reads(stage.op).get(target.op, ())
        axes = stage.compute.axes
        if any(tuple(indices) != axes for indices in reads) or not reads:
            raise self._refused(
                state, f'"{stage.name}" must read "{target.name}" element by element'
            )
        if any(it.kind is not AxisKind.SPACE for it in outer):
            raise self._refused(state, "the loops around it must all be space loops")
        if stage.is_arranged or state.attached(stage) or stage.compute.reduce_axes:
            raise self._refused(
                state, f'"{stage.name}" must have unchanged loops, and no reduction'
            )
        renamed = _follow_splits(state, stage, target)
        order = tuple(renamed[it.name] for it in target.iters if it.name in renamed)
        state = state.replace_stage(_adopt(stage, target, renamed)).reorder(stage.name, order)
        return ComputeAtStep(target.name, stage.name, renamed[self.iter]).apply(state)

    def _refused(self, state: State, message: str) -> ScheduleError:
        return ScheduleError(
            message, step=self.call(), stage=self.stage,
            program=state.text(self.target, {self.iter}),
            hint="tile the consumer and compute_at the producer instead",
        )  # fmt: skip


def _follow_splits(state: State, stage: Stage, target: Stage) -> dict[str, str]:
    """Loop name in *target* -> its name in *stage* once *stage* has the same splits."""
    pairs = zip(target.compute.axes, stage.compute.axes, strict=True)
    renamed = {theirs.name: ours.name for theirs, ours in pairs}
    for relation in target.relations:
        if isinstance(relation, FuseRelation):
            raise ScheduleError(
                f'"{target.name}" has fused loops, which its consumer cannot follow',
                stage=target.name, program=state.text(target.name),
            )  # fmt: skip
        if relation.parent in renamed:
            parent = renamed[relation.parent]
            children = enumerate(relation.children)
            renamed.update({child: f"{parent}.{k}" for k, child in children})
    return renamed


def _adopt(stage: Stage, target: Stage, renamed: dict[str, str]) -> Stage:
    relations = tuple(
        SplitRelation(renamed[r.parent], tuple(renamed[c] for c in r.children), r.factors, r.tail)
        for r in target.relations
        if isinstance(r, SplitRelation) and r.parent in renamed
    )
    iters = tuple(replace(it, name=renamed[it.name]) for it in target.space_iters)
    return replace(stage, relations=relations, iters=iters)


@dataclass(frozen=True)
class ComputeInlineStep(Step):
    """Substitute the stage's definition into its readers; it gets no loops and no memory."""

    kind: Literal["compute_inline"] = "compute_inline"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        hosts = bool(state.attached(stage))
        if hosts or stage.compute.reduce_axes or state.current_dag.is_output(stage.op):
            reason = (
                "other stages are computed in its loops" if hosts
                else "a reduction would be recomputed at every read" if stage.compute.reduce_axes
                else "an output must be stored"
            )  # fmt: skip
            raise self.error(state, reason)
        return state.replace_stage(replace(stage, inlined=True, attach=None))


@dataclass(frozen=True)
class ComputeRootStep(Step):
    """Compute the whole stage at the top level (undoes compute_at and compute_inline)."""

    kind: Literal["compute_root"] = "compute_root"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        return state.replace_stage(replace(stage, inlined=False, attach=None))
