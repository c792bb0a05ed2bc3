"""A process with those that it started: which they are, and what they used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["family", "processor_s"]

_PARENT, _TIMES = 1, slice(11, 15)
"""Fields of /proc/PID/stat behind the name: the parent; its own times and those of the children
that it waited for, user's and system's, in clock ticks."""


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
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                found[int(entry.name)] = text.rpartition(")")[2].split()
    return found
