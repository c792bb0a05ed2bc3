"""The strategy that tries everything, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ansorpy.measure.result import MeasureResult
from ansorpy.search.population import Candidate, Pool, score
from ansorpy.search.strategy import Context

__all__ = ["Grid"]


@dataclass
class Grid:
    """Walks the whole space in order: every row of every structure, for spaces that are small.

    Nothing is drawn, and what keeps a constraint is offered exactly once; the order is that of
    the structures, then of the rows, the last decision changing fastest.  The model's scores are
    attached, but do not change the order.  In a large space long stretches may keep no constraint:
    a round that finds too little in its reach leaves the rest to the next.

    Args:
        chunk: Rows tested for the constraints at once.
        reach: Chunks looked at in a round (half a second of a matmul's), structures with fewer
            rows counting as one.
    """

    chunk: int = 1024
    reach: int = 64
    _walk: Iterator[list[Candidate]] | None = field(default=None, repr=False)
    _pending: list[Candidate] = field(default_factory=list, repr=False)

    def ask(self, context: Context, n: int) -> Pool:
        if self._walk is None:
            self._walk = self._chunks(context)
        waiting = [c for c in self._pending if c.key not in context.measured]
        looked = 0
        while len(waiting) < n and looked < self.reach:
            found = next(self._walk, None)
            if found is None:
                break
            waiting += [c for c in found if c.key not in context.measured]
            looked += 1
        self._pending = waiting
        return Pool(tuple(waiting[:n]), more=looked == self.reach)

    def tell(self, found: Sequence[tuple[Candidate, MeasureResult]]) -> None:
        """Nothing to learn: what comes next does not depend on it."""

    def _chunks(self, context: Context) -> Iterator[list[Candidate]]:
        for structure in context.source.every():
            space = structure.space
            for start in range(0, space.size, self.chunk):
                table = space.rows(start, self.chunk)
                kept = table[structure.valid(table)]
                yield score(context.task, context.model, structure, kept).candidates()
