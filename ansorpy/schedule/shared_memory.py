"""Shared memory of GPU blocks: the stages it holds, and the bytes that a kernel takes.

All sizes are exact, for one program or for a whole table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ansorpy.ir.expr import AxisKind
from ansorpy.ir.loops import BARRIER_BYTES, BLOCK_THREADS, SHARED_ALIGNMENT, SWIZZLED_ROWS, Scope
from ansorpy.schedule.lowering.gpu.overlays import overlays
from ansorpy.schedule.lowering.gpu.thread_sums import groups_of
from ansorpy.schedule.stage import Iter, Stage
from ansorpy.schedule.tables.size import (
    Size,
    above,
    ceil_div,
    either,
    product,
    size_gcd,
    size_max,
    size_min,
)

if TYPE_CHECKING:
    from ansorpy.schedule.bounds.inference import Bounds
    from ansorpy.schedule.state import State

__all__ = [
    "copies_ahead",
    "tile_instances",
    "is_in_shared",
    "shared_bytes",
    "stage_bytes",
    "uses_shared",
]


def is_in_shared(state: State, stage: Stage) -> bool:
    """Whether *stage* is in a kernel, and threads of a block compute or read it together."""
    if stage.attach is None or stage.scope in (Scope.SHARED, Scope.WARP):
        return stage.scope is Scope.SHARED
    host = state.stage(stage.attach.stage)
    inner = host.iters[host.index(stage.attach.iter) + 1 :]
    return any(it.annotation in BLOCK_THREADS for it in (*inner, *stage.iters))


def uses_shared(state: State, stage: Stage) -> bool:
    """Whether *stage* is in shared memory, or has sums that threads of a block share."""
    return is_in_shared(state, stage) or bool(_shared_sum(stage))


def _shared_sum(stage: Stage) -> list[Iter]:
    """The reduce loops of *stage* that are bound to threads."""
    return [it for it in stage.reduce_iters if it.annotation in BLOCK_THREADS]


def copies_ahead(bounds: Bounds, host: Stage) -> bool:
    """Whether the tiles at the pipelined loop of *host* can be copied iterations ahead.

    All tiles must be in shared memory, and none may be computed from another.
    """
    state, reads = bounds.state, bounds.inlined_dag.reads
    tiles = [s for s in state.attached(host) if _is_pipelined(host, s)]
    names = {tile.name for tile in tiles}
    inside = [s.name for tile in tiles for s in (tile, *state.members(tile))]
    alone = all(read.tensor.name not in names for name in inside for read in reads[name])
    return bool(tiles) and alone and all(is_in_shared(state, tile) for tile in tiles)


def tile_instances(bounds: Bounds, stage: Stage) -> Size:
    """Number of instances of *stage*'s tile that exist at once: several if it is copied ahead."""
    host = None if stage.attach is None else bounds.state.stage(stage.attach.stage)
    if host is None or host.pipeline is None or not _is_pipelined(host, stage):
        return 1
    loop, depth = host.pipeline
    if not copies_ahead(bounds, host):
        return 1
    return size_min(bounds.number(depth), bounds.extents(host.name)[loop])


def _is_pipelined(host: Stage, stage: Stage) -> bool:
    at = None if stage.attach is None else stage.attach.iter
    return host.pipeline is not None and host.pipeline[0] == at


def shared_bytes(bounds: Bounds, kernel: Stage) -> Size:
    """Bytes of shared memory in a block of *kernel*: tiles, and sums that threads exchange."""
    total: Size = 0
    for stage in (kernel, *bounds.state.members(kernel)):
        total = total + stage_bytes(bounds, stage)
    return total + BARRIER_BYTES * size_min(_boxes(bounds, kernel), 1)


def _boxes(bounds: Bounds, kernel: Stage) -> Size:
    """Number of tiles of *kernel* that are copied as boxes."""
    total: Size = 0
    for stage in bounds.state.members(kernel):
        total = total + size_min(bounds.number(stage.bulk), 1)
    return total


def stage_bytes(bounds: Bounds, stage: Stage) -> Size:
    """Bytes of shared memory that one stage takes in each block."""
    found = _scratch_bytes(bounds, stage)
    own = is_in_shared(bounds.state, stage) and stage.name not in overlays(bounds.state)
    return found + _tile_bytes(bounds, stage) if own and stage.attach is not None else found


def _tile_bytes(bounds: Bounds, stage: Stage) -> Size:
    """Bytes of all instances of a tile, including its padding."""
    *outer, row = [span.extent for span in bounds.region(stage.name)] or [1]
    pad = bounds.number(stage.pad) if outer else 0
    copies = product(outer) * tile_instances(bounds, stage)
    width = stage.op.dtype.bytes
    elements = copies * (row + pad) - pad
    swizzle = size_gcd(stage.swizzle, row * width) if stage.swizzle else 0
    alignment = size_max(SHARED_ALIGNMENT, swizzle * SWIZZLED_ROWS)
    return ceil_div(elements * width, alignment) * alignment


def _scratch_bytes(bounds: Bounds, stage: Stage) -> Size:
    """Bytes through which the threads that share a sum of *stage* exchange their parts."""
    across = _shared_sum(stage)
    if not across:
        return 0
    threads = bounds.extents(stage.name)[across[0].name]
    groups = groups_of(threads, across[0].annotation)
    sums = product(_sums_apart(bounds, stage)) * groups * stage.op.dtype.of_sums.bytes
    return above(groups, 1) * ceil_div(sums, SHARED_ALIGNMENT) * SHARED_ALIGNMENT


def _sums_apart(bounds: Bounds, stage: Stage) -> Iterator[Size]:
    """Extents of the loops whose iterations each have their own sum in a block.

    These are the enclosing threads, and the space loops inside the first reduce loop that repeats.
    """
    extents = bounds.extents(stage.name)
    inside: Size = 0
    for it in stage.iters:
        if it.kind is AxisKind.REDUCE:
            inside = either(inside, _repeats(it, extents[it.name]))
        else:
            apart = either(inside, int(it.annotation in BLOCK_THREADS))
            yield 1 + apart * (extents[it.name] - 1)
    while stage.attach is not None:
        host = bounds.state.stage(stage.attach.stage)
        around = host.iters[: host.index(stage.attach.iter) + 1]
        yield from (
            bounds.extents(host.name)[it.name] for it in around if it.annotation in BLOCK_THREADS
        )
        stage = host


def _repeats(it: Iter, extent: Size) -> Size:
    return 1 if it.annotation.is_bound else above(extent, 1)
