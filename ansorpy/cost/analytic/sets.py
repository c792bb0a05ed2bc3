"""Which lines of a box compete for the same few places in a cache.

A cache of *w* ways holds *w* lines whose addresses are equal modulo the size of a way.  Rows whose
pitch has a large power of two as a factor start at few such places: of a column of 64 elements
with a pitch of 4 KB, a first-level cache of 12 ways keeps 12 lines however much room it has.  Lines
that come into few sets also come slowly, each waiting for the one before it in its set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from ansorpy.cost.view import AccessView, BufferView, Floats, Masks, Number

__all__ = ["Rows", "SetCache"]


_WAITING_LINES = 16
"""Fewer lines than this are on their way at once whatever their sets."""


@dataclass(frozen=True)
class SetCache:
    """A cache of *bytes* in ways of *way_bytes*; 0: lines lie anywhere.

    Lines from the next level come at full speed when they go to *stream_sets* sets of the first
    level; to *n* sets at ``(n + stream_offset) / (stream_sets + stream_offset)`` of it.
    """

    bytes: float
    way_bytes: int = 0
    stream_sets: float = 0.0
    stream_offset: float = 0.0


@dataclass(frozen=True)
class _Box:
    """The lines of a buffer's box at one depth, and the rows it is made of.

    ``apart[d]``: where dimension *d* steps from run to run, ``extents[d]`` times.
    """

    lines: Floats
    run_lines: Floats
    apart: Sequence[Masks | bool]
    extents: Sequence[Number]


class Rows:
    """The rows of a buffer of fixed shape that several *depths* of a statement touch.

    Of several accesses the first counts: those of one statement are mostly alike.
    """

    def __init__(
        self, buffer: BufferView, depths: Sequence[int], line_bytes: float, first_way_bytes: int
    ):
        self._access, self._depths, self._line_bytes = buffer.accesses[0], depths, line_bytes
        self._first_way_bytes = first_way_bytes
        self._bytes = buffer.elem_bytes
        outer = self._access.pitches[:-1]
        fixed = [pitch for pitch in outer if isinstance(pitch, float)]
        self._pitches = [int(p) * self._bytes for p in fixed] if len(fixed) == len(outer) else []
        self._boxes: dict[int, _Box] = {}
        self._most: dict[int, float] = {}

    def crowded(self, cache: SetCache) -> Masks | None:
        """``[depth, n]``: the box has more lines in a set than *cache* has ways; None: nowhere."""
        if not cache.way_bytes:
            return None
        places, few = self._places(cache.way_bytes)
        found: Masks | None = None
        for at, depth in enumerate(self._depths if few else ()):
            extents = self._access.boxes[depth]
            if any(self._largest(extents[d]) > places[d] for d in few):
                if found is None:
                    found = np.zeros((len(self._depths), len(self._access.region[0])), dtype=bool)
                found[at] = self._is_crowded(self._box(depth), places, few, cache)
        return found

    def slowness(self, cache: SetCache) -> Floats | None:
        """How many times as long lines take into *cache* for going to few sets; None: once.

        The sets are those of the innermost loops that touch enough lines to wait for each other.
        """
        if not cache.stream_sets or self._streams is None:
            return None
        full = cache.stream_sets + cache.stream_offset
        return np.maximum(full / (self._streams + cache.stream_offset), 1.0)

    @cached_property
    def _streams(self) -> Floats | None:
        """Sets of the first level that enough lines go to; None: all, whatever is decided."""
        places, few = self._places(self._first_way_bytes)
        if not few:
            return None
        rows = len(self._access.region[0])
        met, undecided = np.full(rows, np.inf), np.ones(rows, dtype=bool)
        for depth in reversed(self._depths):
            box = self._box(depth)
            enough = undecided & (box.lines >= _WAITING_LINES)
            if enough.any():
                met = np.where(enough, self._met(box, places, self._first_way_bytes), met)
                undecided &= ~enough
            if not undecided.any():
                break
        return met

    def _places(self, way_bytes: int) -> tuple[list[int], list[int]]:
        """For each dimension the different places in a way at which its rows start, and those
        dimensions that do not meet all."""
        places = [way_bytes // gcd(pitch, way_bytes) for pitch in self._pitches]
        sets = way_bytes / self._line_bytes
        return places, [d for d, met in enumerate(places) if met < sets]

    def _met(self, box: _Box, places: Sequence[int], way_bytes: int) -> Floats:
        """Sets that the lines of *box* go to."""
        met = box.run_lines
        for apart, extent, most in zip(box.apart, box.extents, places, strict=True):
            if apart is not False and not (isinstance(extent, float) and extent == 1):
                met = np.where(apart, met * np.minimum(extent, most), met)
        return np.minimum(met, way_bytes / self._line_bytes)

    def _is_crowded(
        self, box: _Box, places: Sequence[int], few: Sequence[int], cache: SetCache
    ) -> Masks:
        repeats = np.zeros(len(box.lines), dtype=bool)
        for d in few:
            repeats |= box.extents[d] > places[d]
        met = self._met(box, places, cache.way_bytes)
        crowded: Masks = repeats & (box.lines * cache.way_bytes > cache.bytes * met)
        return crowded

    def _largest(self, extent: Number) -> float:
        """The largest of a column, which depths share."""
        if isinstance(extent, float):
            return extent
        if id(extent) not in self._most:
            self._most[id(extent)] = float(np.max(extent))
        return self._most[id(extent)]

    def _box(self, depth: int) -> _Box:
        access = self._access
        known = self._boxes.get(id(access.boxes[depth]))
        if known is None:
            known = self._boxes[id(access.boxes[depth])] = self._made(access, depth)
        return known

    def _made(self, access: AccessView, depth: int) -> _Box:
        run = access.run[depth]
        run_lines = np.ceil(run * (self._bytes / self._line_bytes))
        extents = access.boxes[depth]
        apart: list[Masks | bool] = []
        whole: Masks | bool = True
        for d in reversed(range(len(extents) - 1)):
            # A run goes on in this dimension where it covers all further in.
            whole = whole & (extents[d + 1] * access.pitches[d + 1] >= access.pitches[d])
            apart.insert(0, not whole if isinstance(whole, bool) else ~whole)
        return _Box(access.region[depth] / run * run_lines, run_lines, apart, extents[:-1])
