"""Running trials: with a database each is committed before it runs and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ansorpy.ir.task import Task
from ansorpy.measure.built import Built
from ansorpy.measure.database import Database
from ansorpy.measure.recording import measure_recorded
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.runner import Observer, Runner
from ansorpy.schedule.state import State

__all__ = ["Heard", "Retimer", "Trials"]

Heard = Callable[[State, MeasureResult], None]
"""Told of each trial as it ends; not of those the database already knew."""


@runtime_checkable
class Retimer(Protocol):
    """A runner that can time finished programs again, in turns."""

    def retime(
        self, task: Task, candidates: Sequence[State], *, rounds: int = 9
    ) -> list[MeasureResult]:
        """One result a candidate, in order."""


@dataclass
class Trials:
    """Measures programs of a task; without a database nothing is kept."""

    runner: Runner
    database: Database | None = None

    def run(
        self, task: Task, states: Sequence[State], best_s: float | None, heard: Heard
    ) -> list[MeasureResult]:
        """Results of *states*, in order; *heard* is told of each new one as it ends.

        What was told stays told (and committed) when the user stops the work in between.
        """
        if not states:
            return []
        runner = _Listening(self.runner, heard)
        if self.database is not None:
            return measure_recorded(runner, self.database, task, states)
        return runner.measure(task, states, incumbent_s=best_s)

    def retime(self, task: Task, states: Sequence[State]) -> list[MeasureResult] | None:
        """Time *states* again in turns; None when the runner has no clock of its own."""
        return self.runner.retime(task, states) if isinstance(self.runner, Retimer) else None

    def note(self, task: Task, state: State, result: MeasureResult) -> None:
        """Keep the fairer times *result* of a finished trial."""
        record = None if self.database is None else self.database.lookup(task, state)
        if self.database is not None and record is not None:
            self.database.retimed(record, result)


@dataclass
class _Listening:
    """A runner that tells *heard* of each result, after whoever else observes."""

    runner: Runner
    heard: Heard

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        relay = _Relay(candidates, observer, self.heard)
        return self.runner.measure(task, candidates, incumbent_s=incumbent_s, observer=relay)


@dataclass
class _Relay:
    """Passes on what an observer is told."""

    candidates: Sequence[State]
    observer: Observer | None
    heard: Heard

    def started(self, index: int) -> MeasureResult | None:
        return None if self.observer is None else self.observer.started(index)

    def finished(self, index: int, result: MeasureResult, built: Built | None) -> None:
        if self.observer is not None:
            self.observer.finished(index, result, built)
        self.heard(self.candidates[index], result)
