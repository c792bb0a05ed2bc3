"""How many cores other processes keep busy: what a process and its descendants use, and the rest.

Times that were taken meanwhile are wrong, and a probe of the cores' speed cannot tell, because a
load that lasts looks like the speed of the machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from ansorpy.measure.workers.processes import stat_fields, usable_cores

__all__ = [
    "ENOUGH_S", "MOST_SHARED", "OtherProcesses", "SharedCores", "busy_s", "family", "processor_s",
]  # fmt: skip

_LOG = logging.getLogger(__name__)

MOST_SHARED = 0.25
"""Cores that timed programs may share with other processes."""

ENOUGH_S = 5.0
"""Seconds of timing after which it is known whether other processes share the cores."""

_PARENT, _TIMES = 1, slice(11, 15)
"""Fields of /proc/PID/stat behind the name: the parent; its own times and those of the children
that it waited for, user's and system's, in clock ticks."""


class OtherProcesses:
    """Observes what runs beside this process and its descendants on the *cores* it may use."""

    def __init__(self) -> None:
        self.cores = len(usable_cores())
        self._at, self._used_s = monotonic(), _used_s()

    def busy_cores(self) -> float:
        """How many cores they kept busy since the last call, or since the observer was made."""
        at, used_s = monotonic(), _used_s()
        passed_s, foreign_s = at - self._at, used_s - self._used_s
        self._at, self._used_s = at, used_s
        return max(foreign_s, 0.0) / max(passed_s, 1e-9)

    def shared_cores(self, threads: int) -> float:
        """How many of them programs of *threads* threads had to share, since the last call."""
        return max(0.0, self.busy_cores() - max(self.cores - threads, 0))


class SharedCores:
    """Warns, once, if other processes keep cores busy while programs are timed on these."""

    def __init__(self) -> None:
        self._timed_s = self._shared_s = 0.0
        self._is_known = False

    @contextmanager
    def observed(self, threads: int) -> Iterator[None]:
        """Programs of *threads* threads are timed until the block ends."""
        others = None if self._is_known else _observer()
        began = monotonic()
        yield
        if others is None:
            return
        passed_s = monotonic() - began
        self._timed_s += passed_s
        self._shared_s += others.shared_cores(threads) * passed_s
        if self._timed_s > ENOUGH_S:
            self._tell(self._shared_s / self._timed_s)
            self._timed_s = self._shared_s = 0.0

    def _tell(self, shared: float) -> None:
        """Warn if *shared* cores are too many."""
        if shared > MOST_SHARED:
            self._is_known = True
            _LOG.warning(
                "timed programs share %.1f cores with other processes, so times may be wrong: "
                "stop those, and tune again with another database (--db, db= in Python)",
                shared,
            )


def _observer() -> OtherProcesses | None:
    """None where the kernel hides what it counts."""
    with suppress(OSError, ValueError):
        return OtherProcesses()
    return None


def _used_s() -> float:
    """Seconds for which others used these cores since the machine started, but for a constant."""
    return busy_s() - processor_s(os.getpid())


def family(root: int) -> set[int]:
    """*root* and all of its descendants that are alive."""
    return _family(root, _stats())


def processor_s(root: int) -> float:
    """CPU seconds of *root* and its descendants, also of those that have ended."""
    stats = _stats()
    ticks = sum(int(t) for pid in _family(root, stats) for t in stats.get(pid, [])[_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(root: int, stats: Mapping[int, Sequence[str]]) -> set[int]:
    parents = {pid: int(fields[_PARENT]) for pid, fields in stats.items()}
    found, more = {root}, {root}
    while more:
        more = {child for child, parent in parents.items() if parent in more}
        found |= more
    return found


def _stats() -> dict[int, list[str]]:
    """The fields of every process behind its name."""
    processes = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return {pid: fields for pid in processes if (fields := stat_fields(pid))}


def busy_s() -> float:
    """Seconds for which the cores that this process may use were busy since the machine started."""
    cores = {f"cpu{core}" for core in usable_cores()}
    ticks = 0
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *fields = line.split()
        if name in cores:
            user, nice, system, _idle, _waiting, irq, soft, *_ = map(int, fields)
            ticks += user + nice + system + irq + soft
    return ticks / os.sysconf("SC_CLK_TCK")
