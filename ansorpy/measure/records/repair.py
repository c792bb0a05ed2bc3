"""Save what can be read of a damaged tuning database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.records.schema import connect, demand_format, open_to_read, plain_errors

__all__ = ["Saved", "repair"]


@dataclass(frozen=True)
class Saved:
    """What was saved of a table: how many ``rows``, and whether that ``is_all`` of them.

    ``unfit`` rows were read but refer to rows that are lost.
    """

    table: str
    rows: int
    unfit: int
    is_all: bool


def repair(path: Path, output: Path) -> list[Saved]:
    """Copy every row of the database *path* that can be read to the new database *output*.

    Raises:
        UsageError: *output* exists.
        ForeignFile: *path* is not a tuning database of this format, or nothing of it can be read.
    """
    if output.exists():
        raise UsageError(f"{output} exists", hint="name a new file with -o")
    with closing(open_to_read(path)) as source:
        demand_format(source, path)
        try:
            with closing(connect(output)) as target, plain_errors(output):
                saved = [_saved(source, target, table) for table in _tables(target)]
            if not any(table.rows for table in saved):
                raise ForeignFile(f"nothing of {path} can be read")
        except BaseException:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{output}{suffix}").unlink(missing_ok=True)
            raise
    return saved


def _tables(database: sqlite3.Connection) -> list[str]:
    """The names of all tables, each after those to which its rows refer."""
    made = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
    return [row["name"] for row in database.execute(made)]


def _saved(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> Saved:
    """Copy the rows of *table*."""
    information = target.execute(f"PRAGMA table_info({table})").fetchall()
    columns = [row["name"] for row in information]
    keys = [row["name"] for row in information if row["pk"]]
    reader = _Reader(source, table, columns, keys)
    marks = ", ".join("?" * len(columns))
    rows = unfit = 0
    target.execute("BEGIN")
    for row in reader.rows():
        try:
            rows += target.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row).rowcount
        except sqlite3.IntegrityError:
            unfit += 1
    target.execute("COMMIT")
    return Saved(table, rows, unfit, reader.is_all)


class _Reader:
    """Reads a table from both ends, and beyond the damaged parts as far as keys are numbers."""

    def __init__(
        self, source: sqlite3.Connection, table: str, columns: list[str], keys: list[str]
    ) -> None:
        self._source = source
        self._table = table
        self._columns = columns
        self._keys = keys
        self.is_all = False

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows that can be read, some of them twice if there are others."""
        last = None
        for row in self._read(""):
            yield row
            last = row
        if self.is_all:
            return
        if self._keys == ["id"]:
            yield from self._beyond(0 if last is None else int(last[0]))
        yield from self._read(" DESC")
        self.is_all = False

    def _beyond(self, last: int) -> Iterator[tuple[Any, ...]]:
        """The rows behind the damaged part that follows the row number *last*."""
        step = 1
        while step < 1 << 40:
            found = 0
            for row in self._read("", f" WHERE id > {last + step}"):
                yield row
                found, last = found + 1, int(row[0])
            step = 1 if found else 2 * step

    def _read(self, order: str, where: str = "") -> Iterator[tuple[Any, ...]]:
        ordered = ", ".join(f"{key}{order}" for key in self._keys)
        names = ", ".join(self._columns)
        with suppress(sqlite3.DatabaseError, UnicodeDecodeError):
            yield from map(
                tuple,
                self._source.execute(
                    f"SELECT {names} FROM {self._table}{where} ORDER BY {ordered}"
                ),
            )
            self.is_all = self.is_all or not where
