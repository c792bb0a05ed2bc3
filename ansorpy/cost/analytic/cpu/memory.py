"""Bytes that a statement moves between the levels of the memory hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.analytic.cpu.cache_sets import Rows, SetCache, distinct, stacked
from ansorpy.cost.nest_view import BufferView, LeafView

__all__ = ["Footprints", "Traffic"]

Depths = npt.NDArray[np.intp]

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Traffic:
    """Bytes fetched into a cache, and the bytes that must be fetched at least once.

    Bytes that arrive slowly because they go to few cache sets are multiplied by their slowdown.
    """

    moved: Floats
    once: Floats


class Footprints:
    """The cache lines that a statement touches at the depth of each of its real loops.

    ``total[at]`` holds the bytes of all buffers.  ``fetched[buffer, at]`` holds those of one buffer
    times how often the depth is entered (doubled if written, since written lines come in and go
    out).  ``outer[at]`` holds the index of the nearest enclosing real loop (0 for none).

    Args:
        at_once: For each buffer, by loop: where what the loop touches is read only once, so that
            none of its lines can be evicted before it is used again.
    """

    def __init__(
        self,
        view: LeafView,
        line_bytes: float,
        l1_way_bytes: int,
        at_once: Sequence[Mapping[int, Masks]] = (),
    ):
        self.view = view
        self.at_once = at_once or [{}] * len(view.buffers)
        depths = [*view.real, view.depth]
        self.place = {depth: at for at, depth in enumerate(depths)}
        self.rows = [Rows(b, depths, line_bytes, l1_way_bytes) for b in view.buffers]
        self.total = np.zeros((len(depths), view.rows))
        self.fetched = np.empty((len(view.buffers), len(depths), view.rows))
        entered = stacked([view.outer_prod[depth] for depth in depths])
        for buffer, fetched in zip(view.buffers, self.fetched, strict=True):
            touched = _footprints(buffer, depths, line_bytes)
            self.total += touched
            np.multiply(touched, entered, out=fetched)
            if buffer.is_written:
                fetched *= 2.0
        self.once = _sum(self.fetched[:, 0])
        self.candidates = np.arange(view.rows)
        outer = [np.zeros(view.rows, dtype=np.intp)]
        for at, real in enumerate(view.real.values()):
            outer.append(np.where(real, at, outer[-1]))
        self.outer = np.stack(outer)

    def traffic(self, cache: SetCache, kept: Sequence[Floats] = ()) -> Traffic:
        """Bytes that enter *cache* while the statement runs.

        Of each buffer, the cache holds the share *kept* beforehand.

        Take the outermost depth whose working set fits, and the loop just outside it.  An LRU cache
        keeps the lines that two successive iterations of that loop share, so one execution of the
        loop fetches each line once, and finds nothing left from its previous execution.
        A working set of up to twice the cache is partly kept, so cost varies smoothly with size.
        For a buffer whose lines crowd into few cache sets, a depth further in is used.
        """
        fits = self.total <= cache.bytes
        fits[-1] = True
        fetched = self.fetched.reshape(len(self.fetched), -1)
        run_at, kept_at, lost = self._kept(fits, cache)
        again = lost * fetched.take(run_at, axis=1) + (1 - lost) * fetched.take(kept_at, axis=1)
        buffers = zip(self.rows, self.at_once, fetched, again, strict=True)
        for rows, at_once, own, moved in buffers:
            crowded = rows.crowded(cache)
            if crowded is not None:
                for loop, mask in at_once.items():
                    crowded[self.place[loop]] &= ~mask
                run_at, kept_at, lost = self._kept(fits & ~crowded, cache, crowded)
                moved[:] = lost * own.take(run_at) + (1 - lost) * own.take(kept_at)
        if kept:
            again -= np.stack(kept) * self.fetched[:, 0]
            np.maximum(again, 0.0, out=again)
        for rows, moved in zip(self.rows, again, strict=True):
            slowness = rows.slowness(cache)
            if slowness is not None:
                moved *= slowness
        return Traffic(_sum(again), self.once)

    def kept(self, cache_bytes: Floats, between: float = 0.0) -> Floats:
        """Share of the data that stays in a cache of *cache_bytes* from one call to the next.

        Each statement counts alone, with the bytes *between* its calls.
        """
        share: Floats = np.clip(2.0 - (self.total[0] + between) / cache_bytes, 0.0, 1.0)
        return share

    def _kept(
        self, fits: Masks, cache: SetCache, crowded: Masks | None = None
    ) -> tuple[Depths, Depths, Floats]:
        """(places fetched at, places if everything is kept, share of data lost between runs).

        The first places are those of the loop just outside the depth that fits; the second are
        those of the next loop further out.
        """
        run = self._at(self.outer, self._places(np.argmax(fits, axis=0)))
        run_at = self._places(run)
        lost = self._at(self.total, run_at) / cache.bytes - 1
        lost = np.minimum(np.maximum(lost, 0.0), 1.0)  # np.clip takes longer for few rows
        if crowded is not None:
            lost = np.where(self._at(crowded, run_at), 1.0, lost)
        return run_at, self._places(self._at(self.outer, run_at)), lost

    def _places(self, depth: Depths) -> Depths:
        """Indices of the values at each setting's own *depth* in a flat array of all depths."""
        return depth * self.view.rows + self.candidates

    def _at(self, by_depth: npt.NDArray[T], places: Depths) -> npt.NDArray[T]:
        return by_depth.ravel().take(places)


def _sum(by_buffer: Floats) -> Floats:
    """The sum over buffers in a fixed order: the same for one setting as for many."""
    total: Floats = by_buffer[0]
    for part in by_buffer[1:]:
        total = total + part
    return total


def _footprints(buffer: BufferView, depths: Sequence[int], line_bytes: float) -> Floats:
    """Bytes of the lines touched at each depth; each break between runs adds half a line."""
    first, place = distinct([buffer.region[depth] for depth in depths])
    region = stacked([buffer.region[depths[n]] for n in first])
    run = stacked([buffer.run[depths[n]] for n in first])
    runs = region / run
    lines = np.ceil(run * buffer.elem_bytes / line_bytes) + np.where(runs > 1, 0.5, 0.0)
    whole = buffer.elems * buffer.elem_bytes + line_bytes
    footprints: Floats = np.minimum(runs * lines * line_bytes, whole)
    return footprints if len(first) == len(depths) else footprints[place]
