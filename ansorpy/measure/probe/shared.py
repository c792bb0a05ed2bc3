"""Detect whether the cores are slower now than a moment ago.

Two cores of a virtual machine may temporarily be scheduled on one physical core, for tenths of a
second or for minutes, and then reach together what one reaches alone.  The guest is not told; a
loop of multiply-adds on all cores reveals it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

import numpy as np

from ansorpy.codegen.llvm.memory import aligned_empty
from ansorpy.codegen.llvm.timing import bench
from ansorpy.measure.probe.loops import busy_address, full_lanes

__all__ = ["SharedCores"]

_LIMIT = 1.7
"""Times the best recent loop: a neighbour on one core costs 1.5, two cores sharing one 2."""
_TRIES = 12
"""Maximum number of loops per look: the first ones may find sleeping threads."""
_RECENT = 64
"""Number of looks remembered; a slowdown that lasts this long counts as normal."""


class SharedCores:
    """Checks whether *threads* threads have that many cores; a look takes 0.1 to 1 ms.

    Args:
        busy_s: Returns the seconds of one loop on all threads; None: measures it.
    """

    def __init__(self, threads: int, busy_s: Callable[[], float] | None = None) -> None:
        self._threads = threads
        self._memory = aligned_empty((threads + 1, full_lanes()), np.float32)
        self._memory[...] = 0.5
        self._busy_s = busy_s or self._measured_s
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def look(self) -> bool:
        """Return True while the threads do not have their cores to themselves."""
        limit = _LIMIT * min(self._recent, default=0.0)
        least = inf
        for _ in range(_TRIES):
            least = min(least, self._busy_s())
            if least <= limit:
                break
        self._recent.append(least)
        return least > _LIMIT * min(self._recent)

    def _measured_s(self) -> float:
        address, workspace = busy_address(), self._memory.ctypes.data
        status, seconds = bench(address, [[0]], workspace, threads=self._threads, warmup=0, count=1)
        assert status == 0
        return float(seconds[0])
