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
from typing import TypeAlias

import numpy as np

from ansorpy.arrays import Floats, Ints, Masks
from ansorpy.cost.nest_view import BufferView, Number

__all__ = ["Rows", "SetCache", "distinct", "stacked"]

Count: TypeAlias = Ints | int

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
    ``extents[d]`` steps, at most ``largest[d]``.  Rows that a stride steps over do not count.
    """

    lines: Floats
    run_lines: Floats
    apart: Sequence[Masks]
    extents: Sequence[Floats]
    largest: Sequence[float]


class Rows:
    """The rows of a fixed-shape buffer that a statement touches at several *depths*.

    Only the buffer's first access counts, as the accesses of one statement are mostly alike.
    """

    def __init__(
        self, buffer: BufferView, depths: Sequence[int], line_bytes: float, first_way_bytes: int
    ):
        self._access, self._line_bytes = buffer.accesses[0], line_bytes
        self._first_way_bytes = first_way_bytes
        self._bytes = buffer.elem_bytes
        first, self._place = distinct([self._access.boxes[depth] for depth in depths])
        self._depths = [depths[n] for n in first]
        outer = self._access.pitches[:-1]
        fixed = [pitch for pitch in outer if isinstance(pitch, float)]
        self._pitches = [int(p) * self._bytes for p in fixed] if len(fixed) == len(outer) else []
        self._steps = [self._step(d) for d in range(len(self._pitches))]

    def crowded(self, cache: SetCache) -> Masks | None:
        """``[depth, n]``: where the box has more lines per set than *cache* has ways; or None."""
        if not cache.way_bytes:
            return None
        places, few = self._places(cache.way_bytes)
        if not few:
            return None
        boxes = self._boxes
        if not any(boxes.largest[d] > _least(places[d]) for d in few):
            return None
        repeats: Masks | bool = False
        sets = self._sets(cache.way_bytes)
        for d in few:
            repeats = repeats | ((boxes.extents[d] > places[d]) & (places[d] < sets))
        met = self._met(places, cache.way_bytes)
        crowded: Masks = repeats & (boxes.lines * cache.way_bytes > cache.bytes * met)
        return crowded[self._place] if crowded.any() else None

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

    def _places(self, way_bytes: int) -> tuple[list[Count], list[int]]:
        """How many places in a way each dimension's rows start at, and the dimensions with few.

        Dimensions with few places are those that do not reach all sets in some setting.
        """
        places: list[Count] = []
        for pitch, step in zip(self._pitches, self._steps, strict=True):
            shared = gcd(pitch, way_bytes) if step is None else np.gcd(pitch * step, way_bytes)
            places.append(way_bytes // shared)
        sets = self._sets(way_bytes)
        return places, [d for d, met in enumerate(places) if _least(met) < sets]

    def _sets(self, way_bytes: int) -> float:
        return way_bytes / self._line_bytes

    def _step(self, d: int) -> Ints | None:
        """``[box, n]``: rows from one touched row of dimension *d* to the next; None for always 1.

        It is 1 too where rows are not equally far apart.
        """
        boxes, touched = self._access.boxes, self._access.touched
        if all(boxes[depth][d] is touched[depth][d] for depth in self._depths):
            return None
        box, rows = self._columns(boxes, d), self._columns(touched, d)
        step = (box - 1) / np.maximum(rows - 1, 1)
        return np.where(step == np.floor(step), step, 1.0).astype(np.int64)

    def _columns(self, extents: Sequence[tuple[Number, ...]], d: int) -> Floats:
        """``[box, n]``: dimension *d* of *extents*."""
        found = np.empty((len(self._depths), len(self._access.region[0])))
        for column, depth in zip(found, self._depths, strict=True):
            column[:] = extents[depth][d]
        return found

    def _met(self, places: Sequence[Count], way_bytes: int) -> Floats:
        """Number of sets that the lines of each box go to."""
        boxes = self._boxes
        met = boxes.run_lines
        for apart, extent, most in zip(boxes.apart, boxes.extents, places, strict=True):
            met = np.where(apart, met * np.minimum(extent, most), met)
        return np.minimum(met, self._sets(way_bytes))

    @cached_property
    def _boxes(self) -> _Boxes:
        access, depths = self._access, self._depths
        run = stacked([access.run[depth] for depth in depths])
        region = stacked([access.region[depth] for depth in depths])
        run_lines = np.ceil(run * (self._bytes / self._line_bytes))
        *outer, inside = [self._columns(access.touched, d) for d in range(len(access.pitches))]
        apart: list[Masks] = []
        for extent in reversed(outer):
            inside = inside * extent
            apart.insert(0, run < inside)
        largest = [float(extent.max()) for extent in outer]
        return _Boxes(region / run * run_lines, run_lines, apart, outer, largest)


def _least(count: Count) -> int:
    return count if isinstance(count, int) else int(count.min())
