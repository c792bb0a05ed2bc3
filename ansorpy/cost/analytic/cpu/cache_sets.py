"""Cache set conflicts: which lines of a box compete for the same few sets.

A cache of *w* ways holds *w* lines whose addresses are equal modulo the size of a way.  Rows whose
pitch has a large power of two as a factor start in few sets: a first-level cache of 12 ways keeps
only 12 lines of a column of 64 elements with a pitch of 4 KB, whatever the cache's size.  Lines
that go to few sets also arrive slowly, as each waits for the previous one in its set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.cost.nest_view import BufferView

__all__ = ["Rows", "SetCache", "distinct", "stacked"]


_WAITING_LINES = 16
"""Fewer lines than this can all be in flight at once, whatever their sets."""


@dataclass(frozen=True)
class SetCache:
    """A cache of *bytes* with ways of *way_bytes*; with 0, any line may be stored anywhere.

    Lines from the next level arrive at full speed if they go to *stream_sets* sets of the first
    level; if they go to *n* sets, at ``(n + stream_offset) / (stream_sets + stream_offset)`` of it.
    """

    bytes: float
    way_bytes: int = 0
    stream_sets: float = 0.0
    stream_offset: float = 0.0


def stacked(columns: Sequence[Floats]) -> Floats:
    """*columns* as the rows of a matrix."""
    return np.concatenate(columns).reshape(len(columns), -1)


def distinct(objects: Sequence[object]) -> tuple[list[int], list[int]]:
    """Index of the first object of each run of identical ones, and the run of each object."""
    first: list[int] = []
    place: list[int] = []
    for number, each in enumerate(objects):
        if not number or each is not objects[number - 1]:
            first.append(number)
        place.append(len(first) - 1)
    return first, place


@dataclass(frozen=True)
class _Boxes:
    """The distinct boxes of a buffer from the outermost depth inwards, ``[box, n]``.

    ``lines`` counts the lines of the whole box, ``run_lines`` those of each contiguous run.
    ``apart[d]`` is True where dimension *d* (all but the innermost) steps from run to run; it has
    ``extents[d]`` steps, at most ``largest[d]``.  ``place`` is the index of each depth's box.
    """

    lines: Floats
    run_lines: Floats
    apart: Sequence[Masks]
    extents: Sequence[Floats]
    largest: Sequence[float]
    place: Sequence[int]


class Rows:
    """The rows of a fixed-shape buffer that a statement touches at several *depths*.

    Only the buffer's first access counts, as the accesses of one statement are mostly alike.
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

    def crowded(self, cache: SetCache) -> Masks | None:
        """``[depth, n]``: where the box has more lines per set than *cache* has ways; or None."""
        if not cache.way_bytes:
            return None
        places, few = self._places(cache.way_bytes)
        if not few:
            return None
        boxes = self._boxes
        if not any(boxes.largest[d] > places[d] for d in few):
            return None
        repeats = boxes.extents[few[0]] > places[few[0]]
        for d in few[1:]:
            repeats |= boxes.extents[d] > places[d]
        met = self._met(places, cache.way_bytes)
        crowded: Masks = repeats & (boxes.lines * cache.way_bytes > cache.bytes * met)
        return crowded[boxes.place] if crowded.any() else None

    def slowness(self, cache: SetCache) -> Floats | None:
        """Slowdown of lines into *cache* because they go to few sets; None for no slowdown.

        The sets are those of the innermost loops that touch enough lines to wait for each other.
        """
        if not cache.stream_sets or self._streams is None:
            return None
        full = cache.stream_sets + cache.stream_offset
        return np.maximum(full / (self._streams + cache.stream_offset), 1.0)

    @cached_property
    def _streams(self) -> Floats | None:
        """First-level sets used by the innermost box with enough lines; None if always all."""
        places, few = self._places(self._first_way_bytes)
        if not few:
            return None
        enough = self._boxes.lines >= _WAITING_LINES
        met = np.where(enough, self._met(places, self._first_way_bytes), np.inf)
        # The innermost box with enough lines.
        at = len(enough) - 1 - np.argmax(enough[::-1], axis=0)
        found: Floats = met[at, np.arange(met.shape[1])]
        return found

    def _places(self, way_bytes: int) -> tuple[list[int], list[int]]:
        """How many places in a way each dimension's rows start at, and the dimensions with few.

        Dimensions with few places are those that do not reach all sets.
        """
        places = [way_bytes // gcd(pitch, way_bytes) for pitch in self._pitches]
        sets = way_bytes / self._line_bytes
        return places, [d for d, met in enumerate(places) if met < sets]

    def _met(self, places: Sequence[int], way_bytes: int) -> Floats:
        """Number of sets that the lines of each box go to."""
        boxes = self._boxes
        met = boxes.run_lines
        for apart, extent, most in zip(boxes.apart, boxes.extents, places, strict=True):
            met = np.where(apart, met * np.minimum(extent, most), met)
        return np.minimum(met, way_bytes / self._line_bytes)

    @cached_property
    def _boxes(self) -> _Boxes:
        access = self._access
        first, place = distinct([access.boxes[depth] for depth in self._depths])
        depths = [self._depths[n] for n in first]
        run = stacked([access.run[depth] for depth in depths])
        region = stacked([access.region[depth] for depth in depths])
        run_lines = np.ceil(run * (self._bytes / self._line_bytes))
        extents = [np.empty_like(run) for _ in access.pitches]
        for d, columns in enumerate(extents):
            for column, depth in zip(columns, depths, strict=True):
                column[:] = access.boxes[depth][d]
        apart: list[Masks] = []
        whole: Masks | bool = True
        for d in reversed(range(len(extents) - 1)):
            # A run continues into this dimension where it covers all inner ones.
            whole = whole & (extents[d + 1] * access.pitches[d + 1] >= access.pitches[d])
            apart.insert(0, ~whole)
        outer = extents[:-1]
        largest = [float(extent.max()) for extent in outer]
        return _Boxes(region / run * run_lines, run_lines, apart, outer, largest, place)
