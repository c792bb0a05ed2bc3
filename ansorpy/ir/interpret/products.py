"""Asynchronous instructions in flight: their sums are undefined, their operands must not change."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.ir.loops import Buffer, Stmt

__all__ = ["NOT_COMMITTED", "Products", "UnderWay"]

NOT_COMMITTED = -1
"""The group number of copies and instructions not committed to a group yet."""


@dataclass(frozen=True)
class UnderWay:
    """An instruction in flight that *thread* started for its team as part of *group*.

    It adds to elements *at* of *total*; ``reads`` are the elements of tiles in shared memory.
    """

    statement: Stmt
    thread: int
    group: int
    total: Buffer
    at: Ints
    reads: tuple[tuple[Buffer, Ints], ...]

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers that it uses while it is in flight."""
        return (self.total, *(buffer for buffer, _ in self.reads))


class Products:
    """The asynchronous instructions of one launch; each team counts its own groups.

    A team is identified by its first thread.
    """

    def __init__(self, threads: int):
        self.committed = np.zeros(threads, dtype=np.int64)
        self.started: list[UnderWay] = []

    def start(self, found: UnderWay) -> None:
        """Add an instruction to those in flight."""
        self.started.append(found)

    def commit(self, threads: Ints) -> None:
        """Form the next group of each of *threads* from the instructions since its last commit."""
        taking_part = set(threads.tolist())
        self.started = [
            replace(p, group=int(self.committed[p.thread]))
            if p.group == NOT_COMMITTED and p.thread in taking_part
            else p
            for p in self.started
        ]
        self.committed[np.unique(threads)] += 1

    def wait(self, threads: Ints, pending: int) -> list[UnderWay]:
        """Complete all but the last *pending* groups of *threads*; return their instructions."""
        taking_part = set(threads.tolist())
        done, left = list[UnderWay](), list[UnderWay]()
        for p in self.started:
            mine = p.thread in taking_part
            is_done = mine and NOT_COMMITTED < p.group < self.committed[p.thread] - pending
            (done if is_done else left).append(p)
        self.started = left
        return done

    def adds_to(self, buffer: Buffer) -> Ints:
        """The elements of *buffer* that instructions in flight add to."""
        return _joined([p.at for p in self.started if p.total is buffer])

    def reads(self, buffer: Buffer) -> Ints:
        """The elements of *buffer* that instructions in flight may still read."""
        return _joined([at for p in self.started for b, at in p.reads if b is buffer])


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
