"""Open a tuning database that must exist, to report what it says."""

from __future__ import annotations

from pathlib import Path

from ansorpy.errors import ForeignFile
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe

__all__ = ["demand_database", "open_database"]


def demand_database(path: Path) -> None:
    """Raise :class:`ForeignFile` if the database does not exist: reading never creates one."""
    if not path.exists():
        raise ForeignFile(
            f"there is no database {path}", hint="name another file, or tune something first"
        )


def open_database(path: Path) -> Database:
    """Open the database *path*, which must exist, to report what it says, whoever wrote it."""
    demand_database(path)
    return Database(path, believe=Believe.ALL)
