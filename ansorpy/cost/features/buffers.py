"""Features of the buffers a statement touches: volume, lines, reuse (18 values per buffer)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.nest_view import BufferView, LeafView, Touches

__all__ = ["BUFFERS", "MAX_BUFFERS"]

MAX_BUFFERS = 5
"""Number of buffers kept per statement, those with the most lines first.

Source: TVM ``max_n_bufs``."""

LINE_BYTES = 64.0

_ACCESS = ("read", "write", "read_write")
_REUSE = ("loop", "serial", "none")
_NAMES = (
    *(f"acc_{kind}" for kind in _ACCESS),
    "bytes", "unique_bytes", "lines", "unique_lines",
    *(f"reuse_{kind}" for kind in _REUSE),
    "reuse_dis_iter", "reuse_dis_bytes", "reuse_ct",
    "bytes_d_reuse", "unique_bytes_d_reuse", "lines_d_reuse", "unique_lines_d_reuse",
    "stride",
)  # fmt: skip


@dataclass
class _Reuse:
    """Result so far of the walk from the innermost loop outwards, per setting."""

    open: Masks
    serial: Masks
    dis_iter: Floats
    dis_bytes: Floats
    count: Floats


def _lines(view: LeafView, buffer: BufferView) -> tuple[Floats, Floats]:
    """Total cache lines touched, and the stride along the innermost loop.

    Differs: where several inner loops do not move the buffer, TVM divides by a power of the
    innermost extent; this divides by the product of those loops' extents, as TVM intended.
    """
    rows = view.rows
    unknown, innermost = np.ones(rows, dtype=bool), np.ones(rows, dtype=bool)
    stride, feature, skipped = np.zeros(rows), np.zeros(rows), np.ones(rows)
    for loop in reversed(view.real):
        moves = buffer.moves.get(loop)
        if moves is not None:
            smallest = _smallest_stride(buffer, loop)
            here = unknown & moves
            stride = np.where(here, smallest, stride)
            feature = np.where(here & innermost, smallest, feature)
            unknown = unknown & ~moves
        if not unknown.any():
            break
        skipped = np.where(unknown, skipped * view.extent[loop], skipped)
        innermost = innermost & ~view.real[loop]
    dense = np.minimum(1.0, stride * (buffer.elem_bytes / LINE_BYTES))
    return np.maximum(1.0, view.evaluations / skipped * dense), feature


def _smallest_stride(buffer: BufferView, loop: int) -> Floats:
    """Smallest stride among the accesses that the loop moves, where it moves any."""
    if len(buffer.accesses) == 1:
        return buffer.accesses[0].stride[loop]
    moved = [
        np.where(access.moves[loop], access.stride[loop], np.inf)
        for access in buffer.accesses
        if loop in access.moves
    ]
    smallest: Floats = np.minimum.reduce(moved)
    return smallest


def _reuse(view: LeafView, buffer: BufferView) -> _Reuse:
    """Each setting's nearest reuse: a loop that does not move the buffer, or another statement."""
    rows = view.rows
    walk = _Reuse(
        open=np.ones(rows, dtype=bool), serial=np.zeros(rows, dtype=bool),
        dis_iter=np.ones(rows), dis_bytes=np.full(rows, -1.0), count=np.zeros(rows),
    )  # fmt: skip
    for loop in reversed(view.real):
        if not walk.open.any():
            break
        touches, extent, real = view.touches[loop], view.extent[loop], view.real[loop]
        mask = buffer.moves.get(loop)
        moves = None if mask is None else walk.open & mask
        if moves is not None:
            walk.dis_iter = np.where(moves, walk.dis_iter * extent, walk.dis_iter)
            walk.dis_bytes = np.where(moves, touches.total_bytes, walk.dis_bytes)
        if mask is not real:
            stands = walk.open & (real if mask is None else real & ~mask)
            never_moved = stands & (walk.dis_bytes < 0)
            walk.dis_bytes = np.where(never_moved, touches.single_bytes, walk.dis_bytes)
            walk.count = np.where(stands, extent, walk.count)
            walk.open = walk.open & ~stands
        if moves is not None:
            _serial_reuse(walk, touches, buffer.name, moves, extent)
    for name in ("dis_iter", "dis_bytes"):
        setattr(walk, name, np.where(walk.open, 0.0, getattr(walk, name)))
    return walk


def _serial_reuse(walk: _Reuse, touches: Touches, name: str, moves: Masks, extent: Floats) -> None:
    """End the walk where another statement of this loop already touched the buffer."""
    again = touches.counts[name] - 1
    if again < 1:
        return
    found = walk.open & moves
    walk.serial = walk.serial | found
    walk.count = np.where(found, float(again), walk.count)
    walk.dis_iter = np.where(found, touches.smallest[name] / extent, walk.dis_iter)
    walk.dis_bytes = np.where(found, touches.total_bytes / extent, walk.dis_bytes)
    walk.open = walk.open & ~found


def _one_buffer(view: LeafView, buffer: BufferView) -> list[Floats | float | Masks]:
    kind = 2 if buffer.is_read and buffer.is_written else int(buffer.is_written)
    volume = view.evaluations * buffer.elem_bytes
    unique = buffer.touched[0]
    lines, stride = _lines(view, buffer)
    run_bytes = buffer.run[0] * buffer.elem_bytes
    unique_lines = np.maximum(1.0, unique / np.minimum(run_bytes, LINE_BYTES))
    reuse = _reuse(view, buffer)
    # Without reuse, everything counts twice.
    shared = np.where(reuse.open, 0.5, np.maximum(reuse.count, 1.0))
    return [
        *(float(kind == k) for k in range(3)),
        volume, unique, lines, unique_lines,
        ~(reuse.serial | reuse.open), reuse.serial, reuse.open,
        reuse.dis_iter, reuse.dis_bytes, reuse.count,
        *(v / shared for v in (volume, unique, lines, unique_lines)),
        stride,
    ]  # fmt: skip


def _buffers(view: LeafView) -> list[Floats | float]:
    """Values of the top :data:`MAX_BUFFERS` buffers by lines, then bytes, padded with zeros."""
    values = np.empty((len(view.buffers), len(_NAMES), view.rows))
    for found, buffer in zip(values, view.buffers, strict=True):
        for row, value in zip(found, _one_buffer(view, buffer), strict=True):
            row[:] = value
    lines, volume = _NAMES.index("lines"), _NAMES.index("bytes")
    order = np.lexsort((-values[:, volume], -values[:, lines]), axis=0)[:MAX_BUFFERS]
    chosen = np.take_along_axis(values, order[:, None, :], axis=0).reshape(-1, view.rows)
    return [*chosen, *[0.0] * (MAX_BUFFERS * len(_NAMES) - len(chosen))]


BUFFERS = FeatureGroup(
    "buffers",
    "for each touched buffer: access kind, bytes, lines, reuse kind, distance, count, stride",
    tuple(f"B{b}.{name}" for b in range(MAX_BUFFERS) for name in _NAMES),
    _buffers,
)
