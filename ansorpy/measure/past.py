"""Restore a tuning database to its state when one of its runs began."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError

from ansorpy.errors import ForeignFile
from ansorpy.measure.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.schema import plain_errors, tables_about_trials

__all__ = ["past_database"]


@contextmanager
def past_database(
    database: Database, event: int, known: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[Database]:
    """Make a temporary copy of *database* with the trials that a run started from.

    *event* is the last event the run found.  *known* gives, by table, the ranges (first, last) of
    trial numbers whose rows the run had.  Times replaced later are restored.
    """
    with TemporaryDirectory(prefix="ansorpy-past-") as folder:
        path = Path(folder) / "tune.db"
        with plain_errors(database.path):
            _copy(database.path, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as copy, plain_errors(path):
            copy.execute("BEGIN")
            _forget_later(copy, known)
            _undo_retiming(copy, event, database.path)
            copy.execute("DELETE FROM events WHERE id > ?", (event,))
            copy.execute("COMMIT")
        with Database(path) as past:
            yield past


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def _forget_later(copy: sqlite3.Connection, known: Mapping[str, Sequence[tuple[int, int]]]) -> None:
    copy.execute("DELETE FROM objects")
    copy.execute("CREATE TEMP TABLE known (first INTEGER, last INTEGER)")
    for table, column in (("trials", "id"), *tables_about_trials(copy)):
        copy.execute("DELETE FROM known")
        copy.executemany("INSERT INTO known VALUES (?, ?)", known.get(table, ()))
        copy.execute(
            f"DELETE FROM {table} WHERE NOT EXISTS"
            f" (SELECT 1 FROM known WHERE {table}.{column} BETWEEN known.first AND known.last)"
        )


class _Retimed(BaseModel):
    """Body of the event that :meth:`Database.retimed` logs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: int
    seconds: tuple[PositiveFloat, ...] = Field(min_length=1)


def _undo_retiming(copy: sqlite3.Connection, event: int, path: Path) -> None:
    """Restore the times that later events replaced, latest first."""
    later = copy.execute(
        "SELECT body FROM events WHERE kind = 'retimed' AND id > ? ORDER BY id DESC", (event,)
    )
    for (text,) in later.fetchall():
        try:
            before = _Retimed.model_validate_json(text)
        except ValidationError as error:
            raise ForeignFile(
                f"{path} holds an event this ansorpy did not write: {error.errors()[0]['msg']}",
                hint="the file is damaged; name another",
            ) from None
        result = MeasureResult(TrialKind.OK, before.seconds)
        copy.execute(
            "UPDATE trials SET seconds = ?, median_s = ?, spread = ? WHERE id = ?",
            (json.dumps(result.seconds), result.median_s, result.spread, before.record),
        )
