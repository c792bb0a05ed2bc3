"""Bytes a statement moves between the levels of the memory hierarchy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ansorpy.cost.analytic.sets import Rows, SetCache
from ansorpy.cost.view import BufferView, Floats, LeafView, Masks

__all__ = ["Footprints", "Traffic"]

Depths = npt.NDArray[np.intp]

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Traffic:
    """Bytes fetched into a cache, and the bytes that must come in at least once.

    Bytes that come slowly for going to few sets count as many times as they take longer.
    """

    moved: Floats
    once: Floats


class Footprints:
    """The lines that each depth of a statement touches, at the depths around its real loops.

    ``total[at]`` holds the bytes together, ``fetched[buffer][at]`` those of a buffer times how
    often the depth is entered, and ``outer[at]`` the place of the nearest real loop around
    (0: none).
    """

    def __init__(self, view: LeafView, line_bytes: float, l1_way_bytes: int = 4096):
        self.view = view
        depths = [*view.real, view.depth]
        self.rows = [Rows(b, depths, line_bytes, l1_way_bytes) for b in view.buffers]
        self.total = np.zeros((len(depths), view.rows))
        self.fetched: list[Floats] = []
        self.once = np.zeros(view.rows)
        for buffer in view.buffers:
            fetched = np.empty_like(self.total)
            last: Floats | None = None
            for at, depth in enumerate(depths):
                if at == 0 or buffer.region[depth] is not buffer.region[depths[at - 1]]:
                    last = _footprint(buffer, depth, line_bytes)
                assert last is not None
                self.total[at] += last
                np.multiply(last, view.outer_prod[depth], out=fetched[at])
            self.fetched.append(fetched)
            self.once = self.once + _ways(buffer) * fetched[0]
        outer = [np.zeros(view.rows, dtype=np.intp)]
        for at, real in enumerate(view.real.values()):
            outer.append(np.where(real, at, outer[-1]))
        self.outer = np.stack(outer)

    def traffic(self, cache: SetCache) -> Traffic:
        """Bytes that enter *cache* while the statement runs.

        Take the outermost depth whose working set fits, and the loop just outside it.  From one
        iteration of that loop to the next a least-recently-used cache keeps what both touch, so a
        run of the loop fetches each line once, and every run finds nothing left of the one before.
        A working set up to twice the cache stays in part: the cost changes smoothly with its size.
        A buffer that crowds into few sets of the cache is looked at further in.
        """
        fits = self.total <= cache.bytes
        fits[-1] = True
        shared = self._kept(fits, cache)
        moved = np.zeros(self.view.rows)
        for buffer, rows, fetched in zip(self.view.buffers, self.rows, self.fetched, strict=True):
            crowded = rows.crowded(cache)
            found = shared if crowded is None else self._kept(fits & ~crowded, cache, crowded)
            run, kept, lost = found
            again = lost * _at(fetched, run) + (1 - lost) * _at(fetched, kept)
            slowness = rows.slowness(cache)
            moved = moved + _ways(buffer) * (again if slowness is None else again * slowness)
        return Traffic(moved, self.once)

    def _kept(
        self, fits: Masks, cache: SetCache, crowded: Masks | None = None
    ) -> tuple[Depths, Depths, Floats]:
        """The depth whose data stay, the one just outside, and the share of that one's lost."""
        run = _at(self.outer, np.argmax(fits, axis=0))
        lost = np.clip(_at(self.total, run) / cache.bytes - 1, 0, 1)
        if crowded is not None:
            lost = np.where(_at(crowded, run), 1.0, lost)
        return run, _at(self.outer, run), lost


def _ways(buffer: BufferView) -> float:
    """What is written comes in and goes out."""
    return 2.0 if buffer.is_written else 1.0


def _footprint(buffer: BufferView, depth: int, line_bytes: float) -> Floats:
    """Bytes of the lines a depth touches; a broken run drags half a line along."""
    run_bytes = buffer.run[depth] * buffer.elem_bytes
    runs = buffer.region[depth] / buffer.run[depth]
    lines = np.ceil(run_bytes / line_bytes) + np.where(runs > 1, 0.5, 0.0)
    whole = buffer.elems * buffer.elem_bytes + line_bytes
    footprint: Floats = np.minimum(runs * lines * line_bytes, whole)
    return footprint


def _at(by_depth: npt.NDArray[T], depth: Depths) -> npt.NDArray[T]:
    """The value of each setting at its own depth."""
    rows = by_depth.shape[1]
    picked: npt.NDArray[T] = by_depth.ravel().take(depth * rows + np.arange(rows))
    return picked
