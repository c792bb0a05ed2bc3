"""The strategy that tries everything, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ansorpy.search.population import Candidate, Pool, score
from ansorpy.search.strategy import Context, Strategy

__all__ = ["Grid"]


@dataclass
class Grid(Strategy):
    """Enumerates every row of every placed sketch in order; for small spaces.

    Each valid row is offered exactly once, sketch by sketch, with the last decision changing
    fastest.  The model's scores are attached, but do not change the order.  A large space may have
    long stretches without a valid row, so a round stops after ``reach`` chunks and the next one
    continues from there.

    Args:
        chunk: Number of rows checked against the constraints at once.
        reach: Maximum number of chunks checked in a round (64 take half a second for a matmul); a
            placed sketch with fewer rows counts as one chunk.
    """

    chunk: int = 1024
    reach: int = 64
    _walk: Iterator[list[Candidate]] | None = field(default=None, repr=False)
    _pending: list[Candidate] = field(default_factory=list, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        if self._walk is None:
            self._walk = self._chunks(context)
        waiting = context.new(self._pending)
        looked = 0
        while len(waiting) < n and looked < self.reach:
            found = next(self._walk, None)
            if found is None:
                break
            waiting += context.new(found)
            looked += 1
        self._pending = waiting
        return Pool(tuple(waiting[:n]), more=looked == self.reach)

    def _chunks(self, context: Context) -> Iterator[list[Candidate]]:
        for sketch in context.source.every():
            space = sketch.space
            for start in range(0, space.size, self.chunk):
                table = space.rows(start, self.chunk)
                kept = table[sketch.valid(table)]
                yield score(context.task, context.model, sketch, kept).candidates()
