"""The runner of a replay: it returns the recorded results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.journal import Replayed, ReplayEnded
from ansorpy.measure.records import Event
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.runner import Observer
from ansorpy.schedule.state import State

__all__ = ["ToldRunner"]

_TOLD = TypeAdapter(list[tuple[int, TrialKind, tuple[float, ...], bool]])
_RETIMED = TypeAdapter(list[tuple[TrialKind, tuple[float, ...]]])


@dataclass
class ToldRunner:
    """Returns the results of the run recorded in *journal*, in the recorded order.

    The run writes to *past*; *database* is the recorded one, which has what the events lack:
    reasons, and which object code was timed.
    """

    journal: Replayed
    database: Database
    past: Database
    told: int = 0
    """Number of results returned that cost the recorded run a trial."""

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """The recorded results.

        Raises:
            KeyboardInterrupt: The user stopped the recorded run in this batch.
            ReplayEnded: It ended there in another way.
        """
        asked = self.journal.last.body.get("programs")
        names = asked if isinstance(asked, list) else []
        waiting: dict[str, list[int]] = {}
        for at, state in enumerate(candidates):
            waiting.setdefault(self.past.program(state), []).append(at)
        results: dict[int, MeasureResult] = {}
        event = self.journal.expect("tell")
        for index, kind, seconds, known in _read(_TOLD, event, "told"):
            places = waiting.get(str(names[index])) if 0 <= index < len(names) else None
            if not places:
                continue  # the run started with this result
            at = places.pop(0)
            result = self._result(task, candidates[at], kind, seconds)
            if known:
                # Another tuner measured it meanwhile.
                self.past.complete(self.past.start(task, candidates[at]), result)
            results[at] = self._tell(observer, at, result)
            self.told += not known and kind is not TrialKind.CUT
        if len(results) < len(candidates):
            self._end()
        return [results[at] for at in range(len(candidates))]

    def retime(
        self, task: Task, candidates: Sequence[State], *, rounds: int = 9
    ) -> list[MeasureResult] | None:
        """The recorded times; None if the recorded run's runner returned none."""
        event = self.journal.expect("retime")
        told = [MeasureResult(kind, seconds) for kind, seconds in _read(_RETIMED, event, "told")]
        return told or None

    def _tell(self, observer: Observer | None, at: int, result: MeasureResult) -> MeasureResult:
        done = None if observer is None else observer.started(at)
        if observer is not None and done is None:
            observer.finished(at, result, None)
        return done or result

    def _result(
        self, task: Task, state: State, kind: TrialKind, seconds: tuple[float, ...]
    ) -> MeasureResult:
        """The recorded result, with the reason from the database if the trial is the same.

        The database's times may come from a later comparison.
        """
        record = self.database.lookup(task, state)
        if record is None or not record.is_done or record.kind is not kind:
            return MeasureResult(kind, seconds)
        return replace(record.result, seconds=seconds)

    def _end(self) -> None:
        """Stop where the recorded run stopped, in the middle of a batch."""
        following = self.journal.events[self.journal.at + 1 :]
        if following and following[0].kind == "stopped":
            raise KeyboardInterrupt
        raise ReplayEnded


T = TypeVar("T")


def _read(adapter: TypeAdapter[T], event: Event, name: str) -> T:
    try:
        return adapter.validate_python(event.body.get(name))
    except ValidationError as error:
        raise ForeignFile(f"event {event.id} is none this ansorpy wrote: {error}") from None
