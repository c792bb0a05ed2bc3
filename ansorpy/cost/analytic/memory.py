"""Bytes a statement moves between the levels of the memory hierarchy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ansorpy.cost.view import BufferView, Floats, LeafView

__all__ = ["Traffic", "traffic"]

Depths = npt.NDArray[np.intp]

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Traffic:
    """Bytes fetched into a cache, and the bytes that must come in at least once."""

    moved: Floats
    once: Floats


def traffic(view: LeafView, cache_bytes: float, line_bytes: float) -> Traffic:
    """Bytes that enter a cache of *cache_bytes* while the statement runs.

    Take the outermost depth whose working set fits, and the loop just outside it.  From one
    iteration of that loop to the next a least-recently-used cache keeps what both touch, so a run
    of the loop fetches each line once, and every run finds nothing left of the one before.  A
    working set up to twice the cache stays in part: the cost changes smoothly with its size.
    """
    footprints = [_footprint(buffer, line_bytes) for buffer in view.buffers]
    total = footprints[0]
    for footprint in footprints[1:]:
        total = total + footprint
    fits = total <= cache_bytes
    fits[-1] = True
    outer = _outer_depths(view)
    run_depth = _at(outer, np.argmax(fits, axis=0))
    lost = np.clip(_at(total, run_depth) / cache_bytes - 1, 0, 1)
    moved, once = np.zeros(view.rows), np.zeros(view.rows)
    for buffer, footprint in zip(view.buffers, footprints, strict=True):
        ways = 2.0 if buffer.is_written else 1.0
        fetched = footprint * view.outer_prod
        kept = _at(fetched, _at(outer, run_depth))
        moved = moved + ways * (lost * _at(fetched, run_depth) + (1 - lost) * kept)
        once = once + ways * footprint[0]
    return Traffic(moved, once)


def _outer_depths(view: LeafView) -> Depths:
    """``[L + 1, n]``: for each depth, that of the nearest real loop around it (0: none)."""
    outer = [np.zeros(view.rows, dtype=np.intp)]
    for loop in range(view.depth):
        outer.append(np.where(view.real[loop], loop, outer[-1]))
    return np.stack(outer)


def _footprint(buffer: BufferView, line_bytes: float) -> Floats:
    """``[L + 1, n]``: bytes of the lines a depth touches; a broken run drags half a line along."""
    run_bytes = buffer.run * buffer.elem_bytes
    runs = buffer.region / buffer.run
    lines = np.ceil(run_bytes / line_bytes) + np.where(runs > 1, 0.5, 0.0)
    whole = buffer.elems * buffer.elem_bytes + line_bytes
    footprint: Floats = np.minimum(runs * lines * line_bytes, whole)
    return footprint


def _at(by_depth: npt.NDArray[T], depth: Depths) -> npt.NDArray[T]:
    """The value of each candidate at its own depth."""
    picked: npt.NDArray[T] = np.take_along_axis(by_depth, depth[None], axis=0)[0]
    return picked
