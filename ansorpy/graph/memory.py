"""Memory planning: one arena for all intermediate values of a network, shared by lifetime."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.strides import ALIGNMENT_BYTES, padded

__all__ = ["ArenaPlan", "Lifetime", "Placed", "Slot", "plan_arena"]

Interval = tuple[int, int]
"""A range of bytes in the arena: first byte, and end (exclusive)."""


@dataclass(frozen=True)
class Lifetime:
    """Lifetime of a value of ``size_bytes``: written by call ``first``, last read by ``last``.

    The size is an expression of dimensions if calls state their sizes.
    """

    first: int
    last: int
    size_bytes: AnyExtent

    def overlaps(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Slot:
    """The place of one value of ``size_bytes``, behind the slots with the numbers ``behind``.

    It begins where the last of these ends, or at 0, and its end is padded to 64 bytes.
    """

    size_bytes: AnyExtent
    behind: tuple[int, ...]


@dataclass(frozen=True)
class ArenaPlan:
    """Byte offset of each value, and the arena's size; every offset is 64-byte aligned.

    If sizes depend on dimensions, the offsets and ``bytes`` are those at the largest sizes, which
    no call exceeds.  At other sizes, values lie in ``slots``, in order; ``numbers`` has the slot of
    each.
    """

    offsets: Mapping[str, int]
    bytes: int
    slots: tuple[Slot, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)


def plan_arena(lifetimes: Mapping[str, Lifetime]) -> ArenaPlan:
    """Place values, largest first, where they are free during their lifetime.

    Greedy by size: within a few percent of the optimum on networks (Pisarchyk and Lee, 2020,
    "Efficient memory management for deep neural net inference", strategy *greedy by size*).  A
    value goes to the lowest free offset, or is centred on a larger value that overlaps it in
    memory, if each core then rewrites more of the cache lines it already owns (:class:`_Halves`).
    Sizes that depend on dimensions count as their largest.
    **Cost:** O(n log n) for each gap between the values placed.
    """
    largest = {name: most(lifetime.size_bytes) for name, lifetime in lifetimes.items()}
    order = sorted(lifetimes, key=lambda name: (-largest[name], lifetimes[name].first))
    offsets: dict[str, int] = {}
    placed = Placed(max((lifetime.last for lifetime in lifetimes.values()), default=0) + 1)
    halves, total = _Halves(), 0
    for name in order:
        mine, size = lifetimes[name], padded(largest[name])
        taken = sorted(placed.during(mine))
        lowest = _first_gap(taken, size)
        total = max(total, lowest + size)
        others = (at for at in halves.centred(size, total) if _is_free(taken, at, size))
        offset = min((lowest, *others), key=lambda at: (halves.swapped(at, size), at))
        placed.add(mine, (offset, offset + size))
        halves.add(offset, size)
        offsets[name] = offset
    if all(isinstance(lifetime.size_bytes, int) for lifetime in lifetimes.values()):
        return ArenaPlan(offsets, total)
    upward = sorted(lifetimes, key=lambda name: (offsets[name], largest[name]))
    slots = _slots([lifetimes[name] for name in upward])
    return ArenaPlan(offsets, total, slots, {name: number for number, name in enumerate(upward)})


def _slots(lifetimes: Sequence[Lifetime]) -> tuple[Slot, ...]:
    """The slots of values that are given from the lowest to the highest.

    Each lies behind those below it that are alive at the same time, of which only those count that
    are not below another one of them.
    """
    below: list[list[int]] = [[] for _ in lifetimes]
    alive: list[int] = []
    for number in sorted(range(len(lifetimes)), key=lambda n: lifetimes[n].first):
        mine = lifetimes[number]
        alive = [other for other in alive if lifetimes[other].last >= mine.first]
        for other in alive:
            below[max(number, other)].append(min(number, other))
        alive.append(number)
    slots: list[Slot] = []
    behind: list[int] = []  # a set of slots for each, as the bits of a number
    for mine, others in zip(lifetimes, below, strict=True):
        kept, reached = [], 0
        for other in sorted(others, reverse=True):
            if not reached >> other & 1:
                kept.append(other)
                reached |= behind[other] | 1 << other
        slots.append(Slot(mine.size_bytes, tuple(kept)))
        behind.append(reached)
    return tuple(slots)


class _Halves:
    """The first and second halves of the largest values, which different cores mostly write.

    Threads write contiguous shares of a result in order, so one core mostly writes the first half
    of each value and another core the second.  A cache line that another core holds has to be
    fetched from that core's cache, which is slower, and several times slower between two last-level
    caches.
    """

    _MOST = 32
    """Number of values considered; later ones are too small to matter."""

    def __init__(self) -> None:
        self._places: list[tuple[int, int, int]] = []

    def add(self, offset: int, size: int) -> None:
        if len(self._places) < self._MOST:
            self._places.append((offset, offset + size // 2, offset + size))

    def centred(self, size: int, end: int) -> Iterator[int]:
        """Offsets up to *end* at which a value of *size* bytes is centred on an added value."""
        for _, middle, _ in self._places:
            offset = (middle - size // 2) // ALIGNMENT_BYTES * ALIGNMENT_BYTES
            if 0 <= offset <= end - size:
                yield offset

    def swapped(self, offset: int, size: int) -> int:
        """Bytes of a value of *size* at *offset* that would alternate between the two cores."""
        swapped, own = 0, offset + size // 2
        for start, middle, end in self._places:
            low, high = (
                max(start, offset, min(middle, own)),
                min(end, offset + size, max(middle, own)),
            )
            swapped += max(0, high - low)
        return swapped


class Placed:
    """The bytes occupied during each call.

    Two segment trees over the calls hold disjoint intervals of bytes.  A node of the first tree
    holds bytes occupied during all calls of the node; a node of the second holds bytes of the
    lifetimes that begin in it.  A lifetime overlaps those alive at its first call and those that
    begin later.
    """

    def __init__(self, calls: int):
        self.calls = calls
        self.throughout: list[list[Interval]] = [[] for _ in range(2 * calls)]
        self.begun: list[list[Interval]] = [[] for _ in range(2 * calls)]

    def add(self, lifetime: Lifetime, taken: Interval) -> None:
        for node in self._within(lifetime.first, lifetime.last + 1):
            _add(self.throughout[node], taken)
        for node in self._around(lifetime.first):
            _add(self.begun[node], taken)

    def during(self, lifetime: Lifetime) -> Iterator[Interval]:
        """The bytes occupied at some call of *lifetime*; intervals may overlap."""
        for node in self._around(lifetime.first):
            yield from self.throughout[node]
        for node in self._within(lifetime.first + 1, lifetime.last + 1):
            yield from self.begun[node]

    def _around(self, call: int) -> Iterator[int]:
        """The nodes of a tree that contain *call*."""
        node = call + self.calls
        while node:
            yield node
            node //= 2

    def _within(self, first: int, end: int) -> Iterator[int]:
        """The fewest nodes that together cover the calls from *first* to *end* (exclusive)."""
        low, high = first + self.calls, end + self.calls
        while low < high:
            if low % 2:
                yield low
            if high % 2:
                yield high - 1
            low, high = (low + 1) // 2, high // 2


def _add(intervals: list[Interval], new: Interval) -> None:
    """Add *new* to sorted disjoint *intervals*, merging it with those it overlaps or touches."""
    start, end = new
    first = bisect_left(intervals, start, key=lambda interval: interval[1])
    behind = bisect_right(intervals, end, key=lambda interval: interval[0])
    if first < behind:
        start, end = min(start, intervals[first][0]), max(end, intervals[behind - 1][1])
    intervals[first:behind] = [(start, end)]


def _first_gap(taken: Sequence[Interval], size_bytes: int) -> int:
    """The lowest offset at which *size_bytes* fit between the sorted intervals *taken*."""
    offset = 0
    for start, end in taken:
        if offset + size_bytes <= start:
            break
        offset = max(offset, end)
    return offset


def _is_free(taken: Sequence[Interval], offset: int, size: int) -> bool:
    """True when *size* bytes at *offset* overlap none of the intervals *taken*."""
    return all(end <= offset or offset + size <= start for start, end in taken)
