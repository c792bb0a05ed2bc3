"""Detect whether the cores are slower, or farther apart, than a moment ago.

A virtual machine's cores migrate between those of the host, and the guest is not notified.  Two of
them may be scheduled on one physical core, where together they reach the throughput of one: a loop
of multiply-adds on all threads reveals this.  They may also end up behind different last-level
caches, where data that one core writes takes several times as long to reach the other: passing a
cache line around reveals this.  Both disturbances last from tenths of a second to minutes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from ansorpy.codegen.llvm.objects.memory import aligned_empty
from ansorpy.codegen.llvm.objects.timing import bench
from ansorpy.measure.probe.loops import full_lanes, team_kernel

__all__ = ["CoreProbe", "Watch"]

_BUSY_LIMIT = 1.7
"""A neighbour on one core costs a factor of 1.5; two cores that share one cost a factor of 2."""
_RELAY_LIMIT = 2.5
"""Within one last-level cache the times vary by a factor of 1.9; between two they are 5x longer."""
_TRIES = 12
"""Maximum number of loops per check: the first ones may find the threads asleep."""
_RECENT = 64
"""Number of checks remembered; a slowdown that lasts this long counts as normal."""


class Watch:
    """Compares a loop with its best recent time.

    Args:
        seconds: Runs the loop once and returns its time.
        limit: The loop counts as slow when it takes more than this times the best recent time.
    """

    def __init__(self, seconds: Callable[[], float], limit: float) -> None:
        self._seconds = seconds
        self._limit = limit
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def is_slow(self) -> bool:
        """Run the loop a few times, until it is as fast as before; True if it never was."""
        enough = self._limit * min(self._recent, default=0.0)
        least = inf
        for _ in range(_TRIES):
            least = min(least, self._seconds())
            if least <= enough:
                break
        self._recent.append(least)
        return least > self._limit * min(self._recent)


class CoreProbe:
    """Checks the cores that *threads* threads run on; one check takes 0.1 to 2 ms.

    Args:
        watches: The loops that reveal a disturbance; default: the two that the module describes.
    """

    def __init__(self, threads: int, watches: Sequence[Watch] | None = None) -> None:
        self._watches = _watches(threads) if watches is None else watches

    def is_disturbed(self) -> bool:
        """Return True while the cores are shared, or farther apart than they were."""
        return any([watch.is_slow() for watch in self._watches])


def _watches(threads: int) -> list[Watch]:
    operands = aligned_empty((threads + 1, full_lanes()), np.float32)
    operands[...] = 0.5
    busy = Watch(lambda: _seconds(team_kernel("busy"), operands.ctypes.data, threads), _BUSY_LIMIT)
    if threads == 1:
        return [busy]
    token = aligned_empty((1,), np.int64)
    token[...] = 0
    relay = Watch(lambda: _seconds(team_kernel("relay"), token.ctypes.data, threads), _RELAY_LIMIT)
    return [busy, relay]


def _seconds(address: int, workspace: int, threads: int) -> float:
    status, seconds = bench(address, [[0]], workspace, threads=threads, warmup=0, count=1)
    assert status == 0
    return float(seconds[0])
