"""Keep a GPU thread's tile in registers."""

from __future__ import annotations

from dataclasses import dataclass

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind
from ansorpy.rules.base import AnnotationRule
from ansorpy.rules.matching.kernels import kernels_in
from ansorpy.schedule.space import Space
from ansorpy.schedule.stage import KernelStyle, Stage
from ansorpy.target import Target

__all__ = ["ThreadTile"]


@dataclass(frozen=True)
class ThreadTile(AnnotationRule):
    """Unroll a thread's space loops inside the reduction, and those that store its results.

    Registers have no addresses: a sum stays in one only if its index is a constant.  Results of
    the innermost loop are adjacent and stored as vectors.
    Differs: TVM leaves this to nvcc and a random limit on unrolled statements.
    """

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        for kernel in kernels_in(space.state, KernelStyle.THREAD_TILES):
            for stage in (kernel, *state.members(kernel)):
                threads = any(it.annotation is ForKind.THREAD_X for it in stage.iters[:-1])
                inner = _inside_threads(stage) if threads else _inside_reduction(stage)
                stores = threads and inner and inner[-1] == stage.iters[-1].name
                for name in inner[:-1] if stores else inner:
                    state = state.unroll(stage.name, name)
                if stores:
                    state = state.vectorize(stage.name, inner[-1:])
        return Space(state, space.constraints)


def _inside_threads(stage: Stage) -> list[str]:
    """The plain space loops inside those bound to threads."""
    last = max(n for n, it in enumerate(stage.iters) if it.annotation is ForKind.THREAD_X)
    inner = stage.iters[last + 1 :]
    return [it.name for it in inner if _is_plain(stage, it.name)]


def _inside_reduction(stage: Stage) -> list[str]:
    """The plain space loops inside the last reduce loop."""
    reduce = [n for n, it in enumerate(stage.iters) if it.kind is AxisKind.REDUCE]
    inner = stage.iters[reduce[-1] + 1 :] if reduce else ()
    return [it.name for it in inner if _is_plain(stage, it.name)]


def _is_plain(stage: Stage, name: str) -> bool:
    it = stage.iter(name)
    vector = () if stage.vectorize is None else stage.vectorize.iters
    plain = it.kind is AxisKind.SPACE and it.annotation is ForKind.SERIAL
    return plain and name not in vector
