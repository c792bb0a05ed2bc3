"""Replay a recorded run, which must give the same search and the same object code."""

from __future__ import annotations

from pathlib import Path

from ansorpy.api.evaluate.databases import demand_database
from ansorpy.config import available_cores
from ansorpy.errors import UsageError
from ansorpy.measure.build.builder import Builder
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe
from ansorpy.quantities import path_of
from ansorpy.tasks.replay import Rerun, rerun
from ansorpy.tasks.tune import TuneOptions

__all__ = ["replay"]


def replay(
    database: Database | Path | str, run: int | None = None, *, options: TuneOptions | None = None
) -> list[Rerun]:
    """Repeat the searches of a recorded run and compare; returns one result for each search.

    Results come from the records and times from the run's events, so nothing is measured; only the
    best program of each task is built again.  The database is not changed.

    Args:
        run: Number of the run; None for the last one that searched.
        options: The run's options, needed if it used the caller's own parts.

    Raises:
        UsageError: There is no such run, or it used parts or rules that have no registered name.
        ForeignFile: There is no such database, or it is damaged.
    """
    if not isinstance(database, Database):
        file = path_of(database, "a database")
        demand_database(file)
        with Database(file) as own:
            number = _last(own) if run is None else run
            # A run of another user is followed with the results that it had.
            believe = Believe.ALL if own.unsigned(number) else Believe.OWN
        with Database(file, believe=believe) as opened:
            return replay(opened, number, options=options)
    builder = Builder(available_cores())
    try:
        return list(
            rerun(database, _last(database) if run is None else run, builder, options=options)
        )
    finally:
        builder.close()


def _last(database: Database) -> int:
    for session in reversed(database.sessions.all()):
        if any(event.kind == "request" for event in database.sessions.events(session.id)):
            return session.id
    raise UsageError(
        f"no run in {database.path} recorded a search",
        hint="name another file, or tune something first",
    )
