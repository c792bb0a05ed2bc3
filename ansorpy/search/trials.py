"""Running trials; with a database, each is committed before and after it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ansorpy.ir.task import Task
from ansorpy.measure.built import Built
from ansorpy.measure.database import Database
from ansorpy.measure.journal import Journal, Unrecorded
from ansorpy.measure.recording import measure_recorded
from ansorpy.measure.records import Scheduled
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.runner import Runner
from ansorpy.measure.samples import Samples
from ansorpy.measure.seen import Seen
from ansorpy.schedule.state import State

__all__ = ["Heard", "Retimer", "Sharing", "Trials"]

Heard = Callable[[State, MeasureResult, bool], None]
"""Called for each trial as it ends (True), except those CUT, and for each correct program that
another tuner measured meanwhile (False), which spends no trial."""


@runtime_checkable
class Retimer(Protocol):
    """A runner that can time finished programs again, alternating between them."""

    def retime(
        self, task: Task, candidates: Sequence[State], *, rounds: int = 9
    ) -> list[MeasureResult] | None:
        """One result per candidate, in order; None if the runner's clock cannot compare them."""


@runtime_checkable
class Sharing(Protocol):
    """A runner whose timing is disturbed by other computation."""

    def computing(self) -> AbstractContextManager[None]:
        """Hold while this process computes; entering waits until others' timing is done."""


@dataclass
class Trials:
    """Measures programs of a task; without a database nothing is kept.

    *journal* records requests (``ask``) and answers (``tell``).  ``seen`` are the trials that a
    search may use; without a database there are none.
    """

    runner: Runner
    database: Database | None = None
    journal: Journal = field(default_factory=Unrecorded)
    seen: Seen | None = None

    def __post_init__(self) -> None:
        if self.database is not None and self.seen is None:
            self.seen = Seen(self.database)

    def computing(self) -> AbstractContextManager[None]:
        """Hold while searching and training, but not while anything is measured."""
        return self.runner.computing() if isinstance(self.runner, Sharing) else nullcontext()

    def run(
        self, task: Task, states: Sequence[State], best_s: float | None, heard: Heard
    ) -> list[MeasureResult]:
        """Measure *states*; return results in order and call *heard* as each is there.

        Results reported before the user stops the work remain reported and committed.
        """
        if not states:
            return []
        told: list[object] = []

        def hear(index: int, result: MeasureResult, known: bool) -> None:
            told.append([index, result.kind.value, list(result.seconds), known])
            is_news = self._see(task, states[index], result)
            if result.kind is not TrialKind.CUT and (is_news or not known):
                heard(states[index], result, not known)

        self._note("ask", task, {"programs": self._programs(states)})
        try:
            return self._measured(task, states, best_s, hear)
        finally:
            self._note("tell", task, {"told": told})

    def _measured(
        self,
        task: Task,
        states: Sequence[State],
        best_s: float | None,
        hear: Callable[[int, MeasureResult, bool], None],
    ) -> list[MeasureResult]:
        if self.database is not None:
            return measure_recorded(self.runner, self.database, task, states, hear)
        return self.runner.measure(task, states, incumbent_s=best_s, observer=_Unkept(hear))

    def _see(self, task: Task, state: State, result: MeasureResult) -> bool:
        """Add a correct trial to what a search may use; True if it was not there yet."""
        number = self.number(task, state) if result.ok else None
        if self.seen is None or number is None:
            return False
        return self.seen.add(task.key, result.median_s, number)

    def retime(self, task: Task, states: Sequence[State]) -> list[MeasureResult] | None:
        """Time *states* again, alternating; None when the runner cannot compare their times."""
        if not isinstance(self.runner, Retimer):
            return None
        results = self.runner.retime(task, states)
        told = [[r.kind.value, list(r.seconds)] for r in results or ()]
        self._note("retime", task, {"programs": self._programs(states), "told": told})
        return results

    def refuse(self, task: Task, program: Scheduled, result: MeasureResult) -> None:
        """Store that *program* failed with *result* before there was anything to run."""
        if self.database is not None:
            record = self.database.start(task, program)
            if not record.is_done:
                self.database.complete(record, result)

    def number(self, task: Task, state: Scheduled) -> int | None:
        """The number of a finished trial in the database; None if there is none."""
        record = None if self.database is None else self.database.lookup(task, state)
        return None if record is None else record.id

    def keep(self, numbers: Sequence[int | None], samples: Samples) -> None:
        """Store *samples* with the trials of these numbers, skipping those without one."""
        kept = [at for at, number in enumerate(numbers) if number is not None]
        if self.database is not None and kept:
            chosen = [number for number in numbers if number is not None]
            self.database.samples.put(chosen, samples.rows(kept))

    def note(self, task: Task, state: State, result: MeasureResult) -> None:
        """Store the fairer times *result* of a finished trial."""
        record = None if self.database is None else self.database.lookup(task, state)
        if self.database is not None and record is not None:
            self.database.retimed(record, result)

    def is_retimed(self, task: Task, state: State) -> bool:
        """Whether *state* was timed again, beside the other finalists, before this run."""
        number = self.number(task, state)
        return self.seen is not None and number is not None and number in self.seen.retimed

    def _note(self, kind: str, task: Task, body: dict[str, object]) -> None:
        self.journal.note(kind, {"task": task.key, **body})

    def _programs(self, states: Sequence[State]) -> list[str]:
        """Names of *states* in the database; empty without a database."""
        return [] if self.database is None else [self.database.program(s) for s in states]


@dataclass
class _Unkept:
    """An observer that only forwards results."""

    hear: Callable[[int, MeasureResult, bool], None]

    def started(self, index: int) -> MeasureResult | None:
        return None

    def finished(self, index: int, result: MeasureResult, built: Built | None) -> None:
        self.hear(index, result, False)
