"""Bytes a statement moves between the levels of the memory hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ansorpy.cost.view import BufferView, Floats, LeafView

__all__ = ["Traffic", "traffic"]

Depths = npt.NDArray[np.intp]

_USABLE = 0.8
"""Part of a cache the working set may fill before conflicts evict it."""


@dataclass(frozen=True)
class Traffic:
    """Bytes fetched into a cache, and the bytes that must come in at least once."""

    moved: Floats
    once: Floats


def traffic(view: LeafView, cache_bytes: float, line_bytes: float) -> Traffic:
    """Bytes that enter a cache of *cache_bytes* while the statement runs.

    The working set of some depth is the outermost that fits; each entry of that depth fetches its
    data again, except data that the loops just outside leave in place (a least-recently-used cache
    still holds them).
    """
    footprints = [_footprint(buffer, line_bytes) for buffer in view.buffers]
    total = footprints[0]
    for footprint in footprints[1:]:
        total = total + footprint
    fits = total <= _USABLE * cache_bytes
    fits[-1] = True
    depth = np.argmax(fits, axis=0)
    moved, once = np.zeros(view.rows), np.zeros(view.rows)
    for buffer, footprint in zip(view.buffers, footprints, strict=True):
        ways = 2.0 if buffer.is_written else 1.0
        moved = moved + ways * _fetched(view, buffer, footprint, depth)
        once = once + ways * footprint[0]
    return Traffic(moved, once)


def _footprint(buffer: BufferView, line_bytes: float) -> Floats:
    """``[L + 1, n]``: bytes of the lines a depth touches; a broken run drags half a line along."""
    run_bytes = buffer.run * buffer.elem_bytes
    runs = buffer.region / buffer.run
    lines = np.ceil(run_bytes / line_bytes) + np.where(runs > 1, 0.5, 0.0)
    whole = buffer.elems * buffer.elem_bytes + line_bytes
    footprint: Floats = np.minimum(runs * lines * line_bytes, whole)
    return footprint


def _fetched(view: LeafView, buffer: BufferView, footprint: Floats, depth: Depths) -> Floats:
    """Footprint at *depth*, times the entries of that depth that find the data gone."""
    moves = buffer.moves
    entries = np.ones(view.rows)
    counting = np.zeros(view.rows, dtype=bool)
    for loop in reversed(range(view.depth)):
        outside = loop < depth
        counting = counting | (outside & moves[loop])
        entries = np.where(counting & outside, entries * view.extent[loop], entries)
    at_depth = np.take_along_axis(footprint, depth[None], axis=0)[0]
    result: Floats = at_depth * entries
    return result
