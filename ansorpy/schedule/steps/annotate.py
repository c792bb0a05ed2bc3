"""Steps that set how loops run: parallel, vectorised, unrolled, bound to GPU threads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import THREAD_INDICES, ForKind, Scope
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.stage import KernelStyle, Marked
from ansorpy.schedule.steps.base import Count, Step, choice, compute_stage, named, options, some

if TYPE_CHECKING:
    from ansorpy.schedule.state import State

__all__ = [
    "BindStep", "KernelStyleStep", "ParallelStep", "PragmaUnrollStep", "ScopeStep",
    "TensorizeStep", "UnrollStep", "VectorizeStep",
]  # fmt: skip

_SCOPES = [scope for scope in Scope if scope is not Scope.GLOBAL]


@dataclass(frozen=True)
class ParallelStep(Step):
    """Run the first ``count`` of *iters* as one collapsed parallel loop."""

    iters: tuple[str, ...]
    count: Count = field(metadata=choice("{stage}.parallel", 0, keyword=True))
    kind: Literal["parallel"] = "parallel"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        some("loop", self.iters, self, state)
        count = _count(self, state)
        for name in self.iters:
            if stage.iter(name).kind is not AxisKind.SPACE:
                raise self.error(
                    state,
                    "a reduce iterator cannot run in parallel: its iterations add to one element",
                    loops=[name], hint="rfactor the reduction to turn it into a space iterator",
                )  # fmt: skip
        return state.replace_stage(replace(stage, parallel=Marked(self.iters, count)))


@dataclass(frozen=True)
class VectorizeStep(Step):
    """Run the last ``count`` of *iters*, the innermost loops, as one vector loop."""

    iters: tuple[str, ...]
    count: Count = field(metadata=choice("{stage}.vectorize", 0, keyword=True))
    kind: Literal["vectorize"] = "vectorize"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        some("loop", self.iters, self, state)
        count = _count(self, state)
        innermost = tuple(it.name for it in stage.iters[-len(self.iters) :])
        if innermost != self.iters:
            raise self.error(
                state, "only the innermost loops, in order, can be vectorised",
                loops=self.iters, hint="reorder them to the inside first",
            )  # fmt: skip
        for name in self.iters:
            if stage.iter(name).kind is not AxisKind.SPACE:
                raise self.error(
                    state,
                    "a reduce iterator cannot be vectorised: its iterations add to one element",
                    loops=[name], hint="rfactor it and vectorise the new space iterator",
                )  # fmt: skip
        return state.replace_stage(replace(stage, vectorize=Marked(self.iters, count)))


def _count(step: ParallelStep | VectorizeStep, state: State) -> Product:
    """How many of the step's loops to mark; at most all of them."""
    [count] = step.products(state)
    most = max(options(step.count))
    if most > len(step.iters):
        raise step.error(
            state, f"the count is {most}, but the number of loops is {len(step.iters)}",
            loops=step.iters,
        )  # fmt: skip
    return count


@dataclass(frozen=True)
class PragmaUnrollStep(Step):
    """Unroll loops from the inside out while the body stays within *max_step* statements."""

    max_step: Count = field(metadata=choice("{stage}.max_unroll", 0, keyword=True))
    kind: Literal["pragma_unroll"] = "pragma_unroll"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        [max_step] = self.products(state)
        return state.replace_stage(replace(stage, max_unroll=max_step))


@dataclass(frozen=True)
class UnrollStep(Step):
    """Repeat the body of loop *iter* instead of looping."""

    iter: str
    kind: Literal["unroll"] = "unroll"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        return state.replace_stage(stage.annotate(self.iter, ForKind.UNROLLED))


@dataclass(frozen=True)
class BindStep(Step):
    """Bind loop *iter* to a GPU index: ``blockIdx.x``, ``threadIdx.x``, ``vthread``, ..."""

    iter: str
    index: str
    kind: Literal["bind"] = "bind"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        index = named("GPU index", self.index, self, (k for k in ForKind if k.is_bound))
        reduces = stage.iter(self.iter).kind is AxisKind.REDUCE
        if reduces and index not in THREAD_INDICES:  # the threads of a block can share a sum
            raise self.error(
                state, f"a reduce iterator cannot be bound to {self.index}", loops=[self.iter]
            )
        return state.replace_stage(stage.annotate(self.iter, index))


@dataclass(frozen=True)
class KernelStyleStep(Step):
    """Record how threads share the work of *stage*, which is launched as a GPU kernel.

    The step changes no loops; rules that later bind and limit the kernel's loops follow the style.
    """

    style: str
    kind: Literal["set_kernel_style"] = "set_kernel_style"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        style = named("kernel style", self.style, self, KernelStyle)
        return state.replace_stage(replace(stage, kernel_style=style))


@dataclass(frozen=True)
class ScopeStep(Step):
    """Keep the stage's result in memory of *scope*, whatever its compute location suggests."""

    scope: str
    kind: Literal["set_scope"] = "set_scope"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        if state.current_dag.is_output(stage.op):
            raise self.error(
                state, "an output lives in the caller's memory",
                hint="cache_write it and set the scope of the cached stage",
            )  # fmt: skip
        scope = named("memory scope", self.scope, self, _SCOPES)
        return state.replace_stage(replace(stage, scope=scope))


@dataclass(frozen=True)
class TensorizeStep(Step):
    """Replace *iter* and the loops inside it by the declared instruction *intrinsic*."""

    iter: str
    intrinsic: str
    kind: Literal["tensorize"] = "tensorize"

    def apply(self, state: State) -> State:
        stage = compute_stage(state, self.stage, self)
        stage.iter(self.iter)
        return state.replace_stage(replace(stage, tensorized=(self.iter, self.intrinsic)))
