"""Replaying a recorded run: the same search, the same object code."""

from __future__ import annotations

from pathlib import Path

from ansorpy.config import available_cores
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.builder import Builder
from ansorpy.measure.database import Database
from ansorpy.tasks.rerun import Rerun, rerun
from ansorpy.tasks.tune import TuneOptions

__all__ = ["replay"]


def replay(
    database: Database | Path | str, run: int | None = None, *, options: TuneOptions | None = None
) -> list[Rerun]:
    """Search as a recorded run did, and compare: one answer for each search it made.

    Results come from the records and time from the run's events, so nothing is measured; only the
    best program of each task is built again.  The database is not changed.

    Args:
        run: Number of the run; the last that searched when None.
        options: For a run with parts of the caller's own, the same ones.

    Raises:
        UsageError: No such run, or one whose parts or rules are not known by name.
        ForeignFile: There is no such database, or it is damaged.
    """
    if not isinstance(database, Database):
        if not Path(database).exists():
            raise ForeignFile(f"there is no database {database}")
        with Database(database) as opened:
            return replay(opened, run, options=options)
    builder = Builder(available_cores())
    try:
        return list(
            rerun(database, _last(database) if run is None else run, builder, options=options)
        )
    finally:
        builder.close()


def _last(database: Database) -> int:
    for session in reversed(database.sessions()):
        if any(event.kind == "request" for event in database.events(session.id)):
            return session.id
    raise UsageError(f"no run in {database.path} recorded a search")
