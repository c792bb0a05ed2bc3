"""Steps that say how loops run: parallel, vectorised, unrolled, bound to GPU threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.errors import ScheduleError
from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import THREAD_INDICES, ForKind, Scope
from ansorpy.schedule.stage import KernelStyle, Marked
from ansorpy.schedule.steps.base import (
    Count,
    Step,
    at_least,
    chosen,
    compute_stage,
    named,
    numbered,
    opened,
    printed,
    some,
)

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = [
    "AnnotateStep", "KernelStyleStep", "ParallelStep", "PragmaUnrollStep", "ScopeStep",
    "TensorizeStep", "VectorizeStep",
]  # fmt: skip

# Parallel and vector loops have steps of their own, which check what such a loop must be.
_ANNOTATIONS = [
    k for k in ForKind if k not in (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED)
]
_SCOPES = [scope for scope in Scope if scope is not Scope.GLOBAL]


@dataclass(frozen=True)
class ParallelStep(Step):
    """Run the first ``count`` of *iters* as one collapsed parallel loop."""

    iters: tuple[str, ...]
    count: Count
    kind: Literal["parallel"] = field(default="parallel")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        some("loop", self.iters, self, state)
        _check_count(self, state)
        for name in self.iters:
            if stage.iter(name).kind is not AxisKind.SPACE:
                raise ScheduleError(
                    "a reduce iterator cannot run in parallel: its iterations add to one element",
                    step=self.call(), stage=stage.name, program=state.text(stage.name, {name}),
                    hint="rfactor the reduction to turn it into a space iterator",
                )  # fmt: skip
        count, decisions = opened(f"{self.stage}.parallel", self.count)
        return state.replace_stage(replace(stage, parallel=Marked(self.iters, count))).open(
            *decisions
        )

    def call(self) -> str:
        return (
            f"state = state.parallel({self.stage!r}, {list(self.iters)}, "
            f"count={printed(self.count)})"
        )

    def resolve(self, values: Mapping[str, int]) -> ParallelStep:
        return replace(self, count=chosen(f"{self.stage}.parallel", self.count, values))

    def numbers(self) -> dict[str, int]:
        return numbered(f"{self.stage}.parallel", self.count)

    def skeleton(self) -> ParallelStep:
        return replace(self, count=0)


@dataclass(frozen=True)
class VectorizeStep(Step):
    """Run the last ``count`` of *iters*, the innermost loops, as one vector loop."""

    iters: tuple[str, ...]
    count: Count
    kind: Literal["vectorize"] = field(default="vectorize")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        some("loop", self.iters, self, state)
        _check_count(self, state)
        innermost = tuple(it.name for it in stage.iters[-len(self.iters) :])
        if innermost != self.iters:
            raise ScheduleError(
                "only the innermost loops, in order, can be vectorised",
                step=self.call(), stage=stage.name,
                program=state.text(stage.name, set(self.iters)),
                hint="reorder them to the inside first",
            )  # fmt: skip
        for name in self.iters:
            if stage.iter(name).kind is not AxisKind.SPACE:
                raise ScheduleError(
                    "a reduce iterator cannot be vectorised: its iterations add to one element",
                    step=self.call(), stage=stage.name, program=state.text(stage.name, {name}),
                    hint="rfactor it and vectorise the new space iterator",
                )  # fmt: skip
        count, decisions = opened(f"{self.stage}.vectorize", self.count)
        return state.replace_stage(replace(stage, vectorize=Marked(self.iters, count))).open(
            *decisions
        )

    def call(self) -> str:
        return (
            f"state = state.vectorize({self.stage!r}, {list(self.iters)}, "
            f"count={printed(self.count)})"
        )

    def resolve(self, values: Mapping[str, int]) -> VectorizeStep:
        return replace(self, count=chosen(f"{self.stage}.vectorize", self.count, values))

    def numbers(self) -> dict[str, int]:
        return numbered(f"{self.stage}.vectorize", self.count)

    def skeleton(self) -> VectorizeStep:
        return replace(self, count=0)


def _check_count(step: ParallelStep | VectorizeStep, state: State) -> None:
    at_least(0, step.count, step, state)
    if isinstance(step.count, int) and step.count > len(step.iters):
        raise ScheduleError(
            f"{step.count} loops are wanted of {len(step.iters)}",
            step=step.call(), stage=step.stage, program=state.text(step.stage, set(step.iters)),
        )  # fmt: skip


@dataclass(frozen=True)
class PragmaUnrollStep(Step):
    """Unroll loops from the inside out while the body stays within *max_step* statements."""

    max_step: Count
    kind: Literal["pragma_unroll"] = field(default="pragma_unroll")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        at_least(0, self.max_step, self, state)
        steps, decisions = opened(f"{self.stage}.max_unroll", self.max_step)
        return state.replace_stage(replace(stage, max_unroll=steps)).open(*decisions)

    def call(self) -> str:
        return f"state = state.pragma_unroll({self.stage!r}, max_step={printed(self.max_step)})"

    def resolve(self, values: Mapping[str, int]) -> PragmaUnrollStep:
        return replace(self, max_step=chosen(f"{self.stage}.max_unroll", self.max_step, values))

    def numbers(self) -> dict[str, int]:
        return numbered(f"{self.stage}.max_unroll", self.max_step)

    def skeleton(self) -> PragmaUnrollStep:
        return replace(self, max_step=0)


_SHARING = (ForKind.UNROLLED, *THREAD_INDICES)
"""Annotations allowed on a reduce loop: the threads of a block can share a sum."""


@dataclass(frozen=True)
class AnnotateStep(Step):
    """Unroll one loop, or bind it to a GPU index (``blockIdx.x``, ``threadIdx.x``, ``vthread``)."""

    iter: str
    annotation: str
    kind: Literal["annotate"] = field(default="annotate")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        annotation = named("loop annotation", self.annotation, self, _ANNOTATIONS)
        reduces = stage.iter(self.iter).kind is AxisKind.REDUCE
        if reduces and annotation not in _SHARING:
            raise ScheduleError(
                f"a reduce iterator cannot be bound to {self.annotation}",
                step=self.call(), stage=stage.name, program=state.text(stage.name, {self.iter}),
            )  # fmt: skip
        return state.replace_stage(stage.annotate(self.iter, annotation))

    def call(self) -> str:
        if self.annotation == ForKind.UNROLLED.value:
            return f"state = state.unroll({self.stage!r}, {self.iter!r})"
        return f"state = state.bind({self.stage!r}, {self.iter!r}, {self.annotation!r})"


@dataclass(frozen=True)
class KernelStyleStep(Step):
    """Record how the threads of the GPU kernel that *stage* is launched as share its work.

    It changes no loops: rules that bind and limit the kernel's loops later follow the style.
    """

    style: str
    kind: Literal["set_kernel_style"] = field(default="set_kernel_style")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        style = named("kernel style", self.style, self, KernelStyle)
        return state.replace_stage(replace(stage, kernel_style=style))

    def call(self) -> str:
        return f"state = state.set_kernel_style({self.stage!r}, {self.style!r})"


@dataclass(frozen=True)
class ScopeStep(Step):
    """Keep the stage's result in memory of *scope* instead of where its place suggests."""

    scope: str
    kind: Literal["set_scope"] = field(default="set_scope")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if state.dag.is_output(stage.op):
            raise ScheduleError(
                "an output lives in the caller's memory",
                step=self.call(), stage=stage.name, program=state.text(stage.name),
                hint="cache_write it and set the scope of the cached stage",
            )  # fmt: skip
        return state.replace_stage(
            replace(stage, scope=named("memory scope", self.scope, self, _SCOPES))
        )

    def call(self) -> str:
        return f"state = state.set_scope({self.stage!r}, {self.scope!r})"


@dataclass(frozen=True)
class TensorizeStep(Step):
    """Replace *iter* and the loops inside it by the declared instruction *intrinsic*."""

    iter: str
    intrinsic: str
    kind: Literal["tensorize"] = field(default="tensorize")

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        stage.iter(self.iter)
        return state.replace_stage(replace(stage, tensorized=(self.iter, self.intrinsic)))

    def call(self) -> str:
        return f"state = state.tensorize({self.stage!r}, {self.iter!r}, {self.intrinsic!r})"
