"""The kernels of a GPU program: each root stage with all stages computed in its loops."""

from __future__ import annotations

from collections.abc import Iterator

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import Scope
from ansorpy.rules.tiling.levels import space_splits
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.stage import KernelStyle, Stage
from ansorpy.schedule.state import State

__all__ = [
    "kernels", "kernels_in", "thread_factors", "tile_host", "vthread_factors", "with_kernel_style",
]  # fmt: skip


def kernels(state: State) -> Iterator[Stage]:
    """The stages launched as kernels: those at the root that run at each call."""
    for stage in state.stages:
        is_root = stage.attach is None and not stage.inlined and not stage.is_placeholder
        if is_root and stage.name not in state.constant_stages:
            yield stage


def kernels_in(state: State, style: KernelStyle) -> list[Stage]:
    """The kernels of one style."""
    return [kernel for kernel in kernels(state) if kernel.kernel_style is style]


def with_kernel_style(state: State, stage: str, style: KernelStyle) -> State:
    """*state* with *style* recorded for the kernel in which *stage* is computed."""
    kernel = state.root_of(stage)
    if kernel.kernel_style is style:
        return state
    return state.set_kernel_style(kernel.name, style.value)


def vthread_factors(stage: Stage) -> Product:
    """The virtual threads per thread of a kernel of thread tiles."""
    return tuple(f for relation in space_splits(stage) for f in relation.factors[0])


def thread_factors(stage: Stage) -> Product:
    """The threads per block of a kernel of thread tiles."""
    return tuple(f for relation in space_splits(stage) for f in relation.factors[1])


def tile_host(state: State, stage: Stage) -> str | None:
    """The only loop of *stage* at which shared tiles are filled, if it reduces; else None."""
    found = {
        member.attach.iter
        for member in state.attached(stage)
        if member.attach is not None and member.scope is Scope.SHARED
    }
    if len(found) != 1:
        return None
    (name,) = found
    return name if stage.iter(name).kind is AxisKind.REDUCE else None
