"""Running trials: each is committed to the database before it runs and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.records import Record
from ansorpy.measure.result import MeasureResult
from ansorpy.schedule.state import State

__all__ = ["Measurer", "Trial", "Trials"]


class Measurer(Protocol):
    """Builds and times candidates: the part of a runner that search needs."""

    def measure(
        self, task: Task, candidates: Sequence[State], *, incumbent_s: float | None
    ) -> list[MeasureResult]:
        """One result a candidate; failures are results, not exceptions."""


@dataclass(frozen=True)
class Trial:
    """A measured program; ``known`` when the database already had it, so nothing was spent."""

    state: State
    result: MeasureResult
    known: bool = False


@dataclass
class Trials:
    """Measures states of a task in small batches, so that a kill loses one batch at most.

    Without a database nothing is kept.
    """

    runner: Measurer
    database: Database | None = None
    batch: int = 8

    def run(self, task: Task, states: Sequence[State], best_s: float | None) -> Iterator[Trial]:
        """Yield a trial for each state, those the database knows first.

        When the caller or the user stops in between, trials that did not run are taken back.
        """
        started = [(state, self._start(task, state)) for state in states]
        fresh: list[tuple[State, Record | None]] = []
        for state, record in started:
            if record is not None and record.is_done:
                yield Trial(state, record.result, known=True)
            else:
                fresh.append((state, record))
        done = 0
        try:
            while done < len(fresh):
                part = fresh[done : done + self.batch]
                results = self.runner.measure(task, [s for s, _ in part], incumbent_s=best_s)
                for (state, record), result in zip(part, results, strict=True):
                    self._complete(record, result)
                    done += 1
                    if result.ok:
                        best_s = min(result.median_s, best_s or result.median_s)
                    yield Trial(state, result)
        finally:
            for _, record in fresh[done:]:
                self._abandon(record)

    def _start(self, task: Task, state: State) -> Record | None:
        return None if self.database is None else self.database.start(task, state)

    def _complete(self, record: Record | None, result: MeasureResult) -> None:
        if self.database is not None and record is not None:
            self.database.complete(record, result)

    def _abandon(self, record: Record | None) -> None:
        if self.database is not None and record is not None:
            self.database.abandon(record)
