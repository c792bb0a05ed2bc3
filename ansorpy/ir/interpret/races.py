"""Detection of data races: for each element, the last thread that accessed it, and the time.

Time advances at barriers.  Two accesses of different threads conflict if at least one is a write
and there is no barrier in between that both take part in: a barrier of their block if they are in
the same block, else one of the grid.
"""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Ints, Masks
from ansorpy.errors import LoweringError
from ansorpy.ir.interpret.numerics import Value

__all__ = ["AccessLog", "Clock", "Race"]

NOBODY, SEVERAL = -1, -2


class Race(LoweringError):
    """Two threads access one element with no barrier in between, and at least one writes it."""


class Clock:
    """When the blocks and the grid were last synchronised."""

    def __init__(self, blocks: int, threads: int):
        self.now = 1
        self.threads = threads
        self.grid = 1
        self.blocks = np.ones(blocks, dtype=np.int64)

    def synchronise_blocks(self, blocks: Value) -> None:
        """Pass a barrier in each of *blocks*."""
        self.now += 1
        self.blocks[blocks] = self.now

    def synchronise_grid(self) -> None:
        """Pass a barrier of the whole grid."""
        self.now += 1
        self.grid = self.now
        self.blocks[:] = self.now

    def is_recent(self, time: Ints, other_block: Ints, block: Ints) -> Masks:
        """True where no barrier separates an access at *time* by *other_block* from *block* now."""
        barrier = np.where(other_block == block, self.blocks[block], self.grid)
        return np.asarray(time >= barrier)


class AccessLog:
    """Last writer and readers of each element of one buffer, during one parallel region."""

    def __init__(self, size: int, clock: Clock, *, agreement: bool):
        self.clock = clock
        # Iterations of a parallel loop may write the same value, because tiles may overlap.
        self.agreement = agreement
        self.writer, self.reader, self.reader_block = (
            np.full(size, NOBODY, dtype=np.int64) for _ in range(3)
        )
        self.written_at, self.read_at, self.written_by, self.read_by = (
            np.zeros(size, dtype=np.int64) for _ in range(4)
        )

    def read(self, at: Ints, thread: Ints, statement: int) -> tuple[int, int] | None:
        """Record a read; return (element, statement) of a write it conflicts with, or None."""
        writer, block = self.writer[at], thread // self.clock.threads
        conflict = (writer >= 0) & (writer != thread)
        if conflict.any():
            conflict &= self.clock.is_recent(
                self.written_at[at], writer // self.clock.threads, block
            )
            if conflict.any():
                return self._first(at, conflict, self.written_by)
        before, before_block = self.reader[at], self.reader_block[at]
        recent = self.clock.is_recent(self.read_at[at], before_block, block) & (before != NOBODY)
        several = recent & (before != thread)
        blocks = recent & (before_block != block)
        self.reader[at] = np.where(several, SEVERAL, thread)
        self.reader_block[at] = np.where(blocks, SEVERAL, block)
        clash = (self.reader[at] != thread) & ~several
        self.reader[at[clash]] = SEVERAL
        block_clash = (self.reader_block[at] != block) & ~blocks
        self.reader_block[at[block_clash]] = SEVERAL
        self.read_at[at], self.read_by[at] = self.clock.now, statement
        return None

    def write(
        self, at: Ints, thread: Ints, statement: int, unchanged: Masks, agreed: Masks
    ) -> tuple[int, int] | None:
        """Record a completed write; return (element, statement) of a conflicting access, or None.

        *unchanged* is True where the element had the same value before, *agreed* where it has that
        value now, so no other write of the same statement stored a different value.
        """
        block = thread // self.clock.threads
        reader, writer = self.reader[at], self.writer[at]
        read = (reader != NOBODY) & (reader != thread)
        read &= self.clock.is_recent(self.read_at[at], self.reader_block[at], block)
        other = (writer != NOBODY) & (writer != thread)
        other &= self.clock.is_recent(self.written_at[at], writer // self.clock.threads, block)
        allowed = unchanged if self.agreement else np.False_
        for conflict, by in ((read & ~allowed, self.read_by), (other & ~allowed, self.written_by)):
            if conflict.any():
                return self._first(at, conflict, by)
        self.writer[at] = np.where(other, SEVERAL, thread)
        clash = (self.writer[at] != thread) & ~other
        self.written_at[at], self.written_by[at] = self.clock.now, statement
        if clash.any() and not (self.agreement and agreed[clash].all()):
            return self._first(at, clash, self.written_by)
        self.writer[at[clash]] = SEVERAL
        return None

    @staticmethod
    def _first(at: Ints, conflict: Masks, by: Ints) -> tuple[int, int]:
        element = int(at[conflict][0])
        return element, int(by[element])
