"""One arena for all intermediate values of a network, shared by lifetime."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ALIGNMENT_BYTES", "ArenaPlan", "Lifetime", "padded", "plan_arena"]

ALIGNMENT_BYTES = 64
"""Size of a cache line, and of the widest vector."""


@dataclass(frozen=True)
class Lifetime:
    """A value is written by call ``first`` and last read by call ``last``; ``size_bytes`` long."""

    first: int
    last: int
    size_bytes: int

    def overlaps(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class ArenaPlan:
    """Byte offset of each value, and the arena's size; every offset is 64-byte aligned."""

    offsets: Mapping[str, int]
    bytes: int


def plan_arena(lifetimes: Mapping[str, Lifetime]) -> ArenaPlan:
    """Place values, largest first, at the lowest offset free during their lifetime.

    Greedy by size: within a few percent of the optimum on networks (Pisarchyk and Lee, 2020,
    "Efficient memory management for deep neural net inference", strategy *greedy by size*).
    **Cost:** linear in the pairs of values that live at the same time.
    """
    order = sorted(lifetimes, key=lambda name: (-lifetimes[name].size_bytes, lifetimes[name].first))
    offsets: dict[str, int] = {}
    placed = _Placed(max((lifetime.last for lifetime in lifetimes.values()), default=0) + 1)
    for name in order:
        mine = lifetimes[name]
        offset = _first_gap(sorted(placed.during(mine)), mine.size_bytes)
        placed.add(mine, (offset, offset + padded(mine.size_bytes)))
        offsets[name] = offset
    total = max((offsets[n] + padded(lifetimes[n].size_bytes) for n in offsets), default=0)
    return ArenaPlan(offsets, total)


class _Placed:
    """The bytes taken at each of some calls: intervals of offsets.

    Those of a lifetime's first call are on the way from that call to the root of a segment tree;
    all others of a lifetime begin during it.
    """

    def __init__(self, calls: int):
        self.calls = calls
        self.tree: list[list[tuple[int, int]]] = [[] for _ in range(2 * calls)]
        self.firsts: list[tuple[int, tuple[int, int]]] = []

    def add(self, lifetime: Lifetime, interval: tuple[int, int]) -> None:
        insort(self.firsts, (lifetime.first, interval))
        low, end = lifetime.first + self.calls, lifetime.last + self.calls + 1
        while low < end:
            if low % 2:
                self.tree[low].append(interval)
            if end % 2:
                self.tree[end - 1].append(interval)
            low, end = (low + 1) // 2, end // 2

    def during(self, lifetime: Lifetime) -> Iterator[tuple[int, int]]:
        """The intervals taken at some call of *lifetime*, each once."""
        at = lifetime.first + self.calls
        while at:
            yield from self.tree[at]
            at //= 2
        begin = bisect_left(self.firsts, (lifetime.first + 1,))
        end = bisect_left(self.firsts, (lifetime.last + 1,))
        yield from (interval for _, interval in self.firsts[begin:end])


def _first_gap(taken: Sequence[tuple[int, int]], size_bytes: int) -> int:
    """Lowest offset at which *size_bytes* fit between the sorted intervals *taken*."""
    offset = 0
    for start, end in taken:
        if offset + size_bytes <= start:
            break
        offset = max(offset, end)
    return offset


def padded(size_bytes: int) -> int:
    """The bytes that a value of *size_bytes* takes up in an arena."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
