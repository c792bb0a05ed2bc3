"""A recorded run, with everything that was measured of its tasks up to its end."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf

from ansorpy.errors import UsageError
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import EventRow, Record, Session
from ansorpy.tasks.objective import TunedNetwork
from ansorpy.tasks.recorded_request import RunRequest, read_request

__all__ = ["Measurement", "RecordedRun", "recorded_run"]


@dataclass(frozen=True)
class Measurement:
    """One result of a task of a run.

    Args:
        task: The task's number in the run.
        at_s: Seconds of tuning before it, in this run and in earlier ones.
        is_again: Whether it replaces an earlier result of the same program.
    """

    task: int
    at_s: float
    record: Record
    is_again: bool


@dataclass(frozen=True)
class RecordedRun:
    """One run: its request and events, its tasks, and their results in the order they came.

    The results of earlier runs are among them, since a run continues from these.
    """

    session: Session
    request: RunRequest
    events: tuple[EventRow, ...]
    tasks: tuple[Task, ...]
    measurements: tuple[Measurement, ...]

    @property
    def networks(self) -> tuple[TunedNetwork, ...]:
        """The networks that the run tuned; of single operators, one that calls each of them."""
        calls = tuple(task.weight for task in self.request.tasks)
        return self.request.networks or (TunedNetwork(calls),)

    @property
    def seconds(self) -> float | None:
        """Duration of the run; None if it was killed before it measured anything."""
        ended = self.session.ended_at
        if ended is None:
            own = [m.record.finished_at for m in self.measurements if self.is_own(m)]
            ended = max(own, default=None)
        return None if ended is None else ended - self.session.started_at

    def is_own(self, measurement: Measurement) -> bool:
        """Whether this run measured it, and no earlier one."""
        return measurement.record.session == self.session.id

    def best(self, database: Database) -> list[Record | None]:
        """The fastest correct program of each task whose schedule can be read back."""
        last = {m.record.id: m for m in self.measurements}
        correct = [m for m in last.values() if m.record.ok]
        found: list[Record | None] = [None] * len(self.tasks)
        for m in sorted(correct, key=lambda m: (m.record.median_s or inf, m.record.number)):
            if found[m.task] is None and database.state(m.record) is not None:
                found[m.task] = m.record
        return found

    def of(self, task: int) -> list[Measurement]:
        """The measurements of one task."""
        return [m for m in self.measurements if m.task == task]


def recorded_run(
    database: Database, number: int | None = None, tasks: Collection[str] = ()
) -> RecordedRun:
    """Run *number* of *database*, or the last one that searched: for one of *tasks*, if given.

    Raises:
        UsageError: There is no such run.
    """
    sessions = {session.id: session for session in database.sessions.all()}
    chosen = reversed(sessions) if number is None else [number] if number in sessions else []
    for session in chosen:
        events = database.sessions.events(session)
        if events and events[0].kind == "request" and _is_of(events, tasks):
            return _read(database, sessions, sessions[session], events)
    asked = "a run that searched" if number is None else f"a run {number} that searched"
    asked += " for this network" if tasks else ""
    raise UsageError(
        f"{database.path} does not have {asked}",
        hint="tune something first, or choose one: "
        f"ansorpy db runs --db {shlex.quote(str(database.path))}",
    )


def _is_of(events: Sequence[EventRow], tasks: Collection[str]) -> bool:
    """Whether a run with these *events* measured programs of one of *tasks*; True without any."""
    return not tasks or any(event.body.get("task") in tasks for event in events)


def _read(
    database: Database, sessions: dict[int, Session], session: Session, events: list[EventRow]
) -> RecordedRun:
    request = read_request(events[0], database)
    tasks = tuple(entry.task(database) for entry in request.tasks)
    found = [
        (number, record)
        for number, task in enumerate(tasks)
        for record in database.measured(task.key)
        if record.session <= session.id
    ]
    found.sort(key=lambda entry: entry[1].number)
    began = _beginnings(sessions, [record for _, record in found])
    seen: set[int] = set()
    measurements = []
    for number, record in found:
        at_s = began[record.session] + record.finished_at - sessions[record.session].started_at
        measurements.append(Measurement(number, at_s, record, record.id in seen))
        seen.add(record.id)
    return RecordedRun(session, request, tuple(events), tasks, tuple(measurements))


def _beginnings(sessions: dict[int, Session], records: list[Record]) -> dict[int, float]:
    """Seconds of tuning before each of the *sessions* that measured *records*."""
    ended: dict[int, float] = {}
    for record in records:
        ended[record.session] = max(ended.get(record.session, 0.0), record.finished_at)
    found, passed = {}, 0.0
    for number in sorted(ended):
        found[number] = passed
        last = sessions[number].ended_at or ended[number]
        passed += max(last - sessions[number].started_at, 0.0)
    return found
