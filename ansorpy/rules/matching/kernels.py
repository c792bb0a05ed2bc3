"""The kernels of a GPU program: each root stage with all stages computed in its loops."""

from __future__ import annotations

from collections.abc import Iterator

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import ForKind, Scope
from ansorpy.rules.tiling.levels import space_splits
from ansorpy.schedule.decisions import Product
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.state import State

__all__ = [
    "is_block_tiled", "kernel_of", "kernels", "tile_host",
    "thread_factors", "vthread_factors",
]  # fmt: skip


def kernels(state: State) -> Iterator[Stage]:
    """The stages launched as kernels: those at the root that run at each call."""
    for stage in state.stages:
        is_root = stage.attach is None and not stage.inlined and not stage.is_placeholder
        if is_root and stage.name not in state.bind_stages:
            yield stage


def kernel_of(state: State, stage: Stage) -> Stage:
    """The stage in whose kernel *stage* is computed, at any depth."""
    while stage.attach is not None:
        stage = state.stage(stage.attach.stage)
    return stage


def is_block_tiled(stage: Stage) -> bool:
    """True for a root stage whose tiles are a kernel's blocks, virtual threads and threads."""
    virtual = any(it.annotation is ForKind.VTHREAD for it in stage.iters)
    return virtual and stage.attach is None


def vthread_factors(stage: Stage) -> Product:
    """The virtual threads per thread of a kernel that :func:`is_block_tiled`."""
    return tuple(f for relation in space_splits(stage) for f in relation.factors[0])


def thread_factors(stage: Stage) -> Product:
    """The threads per block of a kernel that :func:`is_block_tiled`."""
    return tuple(f for relation in space_splits(stage) for f in relation.factors[1])


def tile_host(state: State, stage: Stage) -> str | None:
    """The reduce loop of *stage* at which shared tiles are filled; None unless there is one."""
    found = {
        member.attach.iter
        for member in state.attached(stage)
        if member.attach is not None and member.scope is Scope.SHARED
    }
    if len(found) != 1:
        return None
    (name,) = found
    return name if stage.iter(name).kind is AxisKind.REDUCE else None
