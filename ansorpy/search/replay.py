"""The trials of a recorded run, for repeating its searches without measuring or writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import ReplayJournal
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.rows import EventRow, Position, Record, Scheduled
from ansorpy.measure.records.samples import Samples
from ansorpy.measure.result import MeasureResult, out_of_time
from ansorpy.measure.trial_end import OnEnd, TrialEnd
from ansorpy.profiler import Span
from ansorpy.schedule.state import State
from ansorpy.search.history import Best
from ansorpy.search.trials import Trials

__all__ = ["ReplayedTrials"]

_MEASURED = TypeAdapter(list[int])
_RETIMED = TypeAdapter(list[int | None])

T = TypeVar("T")


class ReplayedTrials(Trials):
    """Returns the results that the events of a recorded run refer to, in the recorded order.

    Args:
        database: The run's database, which is only read.
        began: The end of the database when the run began.
        session: The run's number; results of other sessions cost it no trial.
    """

    def __init__(
        self, database: Database, journal: ReplayJournal, began: Position, session: int
    ) -> None:
        super().__init__(database, journal, KnownTrials(database, began))
        self._events = journal
        self._session = session
        self.spent = 0
        """Number of results so far that the recorded run measured itself."""

    def computing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def beside(self, work: Callable[[], T]) -> Future[T]:
        """Compute it now: nothing is built."""
        done = Future[T]()
        done.set_result(work())
        return done

    def define(self, task: Task, definitions: Mapping[str, ComputeDAG]) -> None:
        """Store nothing, here and in the methods below: the recorded run already did."""

    def refuse(self, task: Task, program: Scheduled, result: MeasureResult) -> Record | None:
        return None

    def keep_samples(self, trials: Sequence[int | None], samples: Samples) -> None: ...

    def keep_model(self, digest: str, text: str) -> None: ...

    def begin(self, task: Task) -> None: ...

    def note_ending(self, reason: str) -> None: ...

    def note_times(self, spans: Sequence[Span]) -> None: ...

    def _measure(self, task: Task, states: Sequence[State], on_end: OnEnd) -> None:
        """Report the recorded results.

        Raises:
            KeyboardInterrupt: The user stopped the recorded run in this batch.
        """
        waiting = {self.database.program(state): state for state in states}
        event = self._events.expect("tell")
        for number in _read(_MEASURED, event, "results"):
            record = self.database.record(number)
            state = waiting.pop(record.program, None)
            if state is None:
                raise ForeignFile(f"event {event.id} has a program that was not asked for")
            is_own = record.session == self._session
            self.spent += is_own
            on_end(TrialEnd(state, record.result, record=record, is_own=is_own))
        if waiting and self._events.is_stopped_next:
            raise KeyboardInterrupt
        for state in waiting.values():
            on_end(TrialEnd(state, out_of_time()))

    def _retime(self, task: Task, finalists: Sequence[Best]) -> list[Record | None]:
        numbers = _read(_RETIMED, self._events.expect("retime"), "results")
        return [None if number is None else self.database.record(number) for number in numbers]


def _read(adapter: TypeAdapter[T], event: EventRow, name: str) -> T:
    try:
        return adapter.validate_python(event.body.get(name))
    except ValidationError as error:
        raise ForeignFile(f"event {event.id} was not written by this ansorpy: {error}") from None
