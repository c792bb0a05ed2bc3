"""Features of the buffers a statement touches: volume, lines, reuse (18 values a buffer)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.cost.features.group import FeatureGroup
from ansorpy.cost.view import BufferView, Floats, LeafView, Touches

__all__ = ["BUFFERS", "MAX_BUFFERS"]

MAX_BUFFERS = 5
"""Buffers kept a statement, those with most lines first. Source: TVM ``max_n_bufs``."""

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
    """What the walk from the innermost loop outwards has found, a candidate each."""

    open: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    loop: Floats
    serial: Floats
    dis_iter: Floats
    dis_bytes: Floats
    count: Floats


def _lines(view: LeafView, buffer: BufferView) -> tuple[Floats, Floats]:
    """Cache lines touched in all, and the stride along the innermost loop.

    Differs: TVM divides by a power of the innermost extent where several inner loops do not
    move the buffer; here by the product of those loops' extents, as was meant.
    """
    rows = view.rows
    strides = np.stack([np.where(a.moves, a.stride, np.inf) for a in buffer.accesses])
    smallest = np.minimum.reduce(strides) if view.depth else np.zeros((0, rows))
    found, innermost = np.zeros(rows, dtype=bool), np.ones(rows, dtype=bool)
    stride, feature, skipped = np.zeros(rows), np.zeros(rows), np.ones(rows)
    for loop in reversed(range(view.depth)):
        moves = np.isfinite(smallest[loop]) & ~found
        stride = np.where(moves, smallest[loop], stride)
        feature = np.where(moves & innermost, smallest[loop], feature)
        found = found | moves
        skipped = np.where(found, skipped, skipped * view.extent[loop])
        innermost = innermost & ~view.real[loop]
    dense = np.minimum(1.0, stride * buffer.elem_bytes / LINE_BYTES)
    return np.maximum(1.0, view.evaluations / skipped * dense), feature


def _reuse(view: LeafView, buffer: BufferView) -> _Reuse:
    """Find each candidate's nearest reuse: a loop that stands still, or a second touch."""
    rows = view.rows
    walk = _Reuse(
        open=np.ones(rows, dtype=bool), loop=np.zeros(rows), serial=np.zeros(rows),
        dis_iter=np.ones(rows), dis_bytes=np.full(rows, -1.0), count=np.zeros(rows),
    )  # fmt: skip
    for loop in reversed(range(view.depth)):
        touches, extent, real = view.touches[loop], view.extent[loop], view.real[loop]
        moves = walk.open & buffer.moves[loop]
        walk.dis_iter = np.where(moves, walk.dis_iter * extent, walk.dis_iter)
        walk.dis_bytes = np.where(moves, touches.total_bytes, walk.dis_bytes)
        stands = walk.open & real & ~buffer.moves[loop]
        never_moved = stands & (walk.dis_bytes < 0)
        walk.dis_bytes = np.where(never_moved, touches.single_bytes, walk.dis_bytes)
        walk.loop = np.where(stands, 1.0, walk.loop)
        walk.count = np.where(stands, extent, walk.count)
        walk.open = walk.open & ~stands
        _serial_reuse(walk, touches, buffer.name, moves, extent)
    for name in ("dis_iter", "dis_bytes"):
        setattr(walk, name, np.where(walk.open, 0.0, getattr(walk, name)))
    return walk


def _serial_reuse(
    walk: _Reuse, touches: Touches, name: str, moves: Floats | np.ndarray, extent: Floats
) -> None:
    """Close the walk where another statement of this loop already touched the buffer."""
    again = touches.counts[name] - 1
    if again < 1:
        return
    found = walk.open & moves.astype(bool)
    walk.serial = np.where(found, 1.0, walk.serial)
    walk.count = np.where(found, float(again), walk.count)
    walk.dis_iter = np.where(found, touches.smallest[name] / extent, walk.dis_iter)
    walk.dis_bytes = np.where(found, touches.total_bytes / extent, walk.dis_bytes)
    walk.open = walk.open & ~found


def _one_buffer(view: LeafView, buffer: BufferView) -> list[Floats]:
    rows = view.rows
    kind = 2 if buffer.is_read and buffer.is_written else int(buffer.is_written)
    volume = view.evaluations * buffer.elem_bytes
    unique = buffer.region[0] * buffer.elem_bytes
    lines, stride = _lines(view, buffer)
    run_bytes = buffer.run[0] * buffer.elem_bytes
    unique_lines = np.maximum(1.0, unique / np.minimum(run_bytes, LINE_BYTES))
    reuse = _reuse(view, buffer)
    none = reuse.open.astype(np.float64)
    volumes = [volume, unique, lines, unique_lines]
    per_reuse = [np.where(reuse.open, 2 * v, v / np.maximum(reuse.count, 1)) for v in volumes]
    return [
        *(np.full(rows, float(kind == k)) for k in range(3)),
        *volumes,
        reuse.loop, reuse.serial, none,
        reuse.dis_iter, reuse.dis_bytes, reuse.count,
        *per_reuse,
        stride,
    ]  # fmt: skip


def _buffers(view: LeafView) -> list[Floats]:
    """Values of the first :data:`MAX_BUFFERS` buffers by lines, then bytes; zeros fill up."""
    values = np.stack([np.stack(_one_buffer(view, b)) for b in view.buffers])
    lines, volume = _NAMES.index("lines"), _NAMES.index("bytes")
    order = np.lexsort((-values[:, volume], -values[:, lines]), axis=0)[:MAX_BUFFERS]
    chosen = np.take_along_axis(values, order[:, None, :], axis=0)
    flat = chosen.reshape(-1, view.rows)
    missing = MAX_BUFFERS * len(_NAMES) - flat.shape[0]
    return [*flat, *np.zeros((missing, view.rows))]


BUFFERS = FeatureGroup(
    "buffers",
    "for each touched buffer: access kind, bytes, lines, reuse kind, distance, count, stride",
    tuple(f"B{b}.{name}" for b in range(MAX_BUFFERS) for name in _NAMES),
    _buffers,
    frozenset(
        f"B{b}.{flag}"
        for b in range(MAX_BUFFERS)
        for flag in (*(f"acc_{k}" for k in _ACCESS), *(f"reuse_{k}" for k in _REUSE))
    ),
)
