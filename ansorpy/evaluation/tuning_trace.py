"""The trace of a recorded tuning run: what the search did, its builds, and its measurements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ValidationError

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import TIMES
from ansorpy.measure.records.rows import EventRow, Record
from ansorpy.trace import Trace

__all__ = ["trace_of_tuning"]

_Interval: TypeAlias = tuple[float, float]


class _Times(BaseModel):
    """The body of an event of kind ``times``."""

    activities: list[tuple[str, float, float]]
    builds: list[_Interval]


def trace_of_tuning(
    database: Database, run: int | None = None, tasks: Collection[str] = ()
) -> Trace:
    """The trace of *run* of *database*; default: the last run that measured something.

    If *tasks* (keys) are given, the run measured programs of one of them.

    One track shows the activities of the search (:class:`ansorpy.profiler.Activity`), one each
    trial from its start to its result, and one for each worker that built at the same time as
    others when it was busy.

    Raises:
        UsageError: There is no such run, or none that measured.
        ForeignFile: The database is damaged.
    """
    known = {session.id: session for session in database.sessions.all()}
    if run is not None and run not in known:
        raise UsageError(
            f"there is no run {run} in {database.path}",
            hint=f"runs: {', '.join(map(str, known)) or 'none'}",
        )
    for number in reversed(known) if run is None else [run]:
        results = database.measured_by(number)
        times = [_times(e, database.path) for e in database.sessions.events(number)
                 if e.kind == TIMES]  # fmt: skip
        if (results or times) and (not tasks or any(r.task_key in tasks for r in results)):
            trace = Trace(f"tuning run {number} of {database.path.name}")
            _add_search(trace, times)
            _add_trials(trace, database, results, known[number].started_at)
            _add_builds(trace, [build for each in times for build in each.builds])
            return trace
    of_network = " programs of this network" if tasks else ""
    raise UsageError(
        f"{database.path} has no run that measured{of_network}", hint="tune something first"
    )


def _times(event: EventRow, path: Path) -> _Times:
    try:
        return _Times.model_validate(event.body)
    except ValidationError:
        raise ForeignFile(f"event {event.id} of {path} does not say when a run did what") from None


def _add_search(trace: Trace, times: Iterable[_Times]) -> None:
    for each in times:
        for name, start, end in each.activities:
            trace.add("search", name, start * 1e6, end * 1e6)


def _add_trials(
    trace: Trace, database: Database, results: Sequence[Record], began_at: float
) -> None:
    """A slice for each trial, which begins when the one before has ended or later.

    A program that was timed again in turns with others has a slice up to its new result, which
    begins with the run (*began_at*) if nothing was measured before.
    """
    names = {row.key: row.name for row in database.tasks()}
    best: dict[str, float] = {}
    starts = [began_at, *(record.finished_at for record in results)]
    for record, before in zip(results, starts, strict=False):
        start = before if record.scale is not None else max(record.started_at, before)
        if record.median_s is not None:
            best[record.task_key] = min(record.median_s, best.get(record.task_key, record.median_s))
        trace.add(
            "trials", names.get(record.task_key, "a task"), start * 1e6, record.finished_at * 1e6,
            result=record.kind.value, why=record.reason, program=record.program,
            median_us=_us(record.median_s), best_us=_us(best.get(record.task_key)),
            build_s=record.build_s, again=record.scale is not None,
        )  # fmt: skip


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


def _add_builds(trace: Trace, builds: Iterable[_Interval]) -> None:
    """Put each build on the first track that is free when it starts."""
    ends: list[float] = []
    for start, end in sorted(builds):
        free = next((n for n, last in enumerate(ends) if last <= start), len(ends))
        ends[free:] = [end, *ends[free + 1 :]]
        trace.add(f"builds {free + 1}", "build", start * 1e6, end * 1e6)
