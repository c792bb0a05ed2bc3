"""The tables of a tuning database, and the checks that a file is one.

A trial is a program of a task; ``results`` has the outcomes of measuring it.  Rows of ``results``
are only ever appended, and the last result of a trial counts; a row of ``samples`` is replaced only
by features of another version, and keeps its number.  Two row numbers therefore determine what a
run found in the database when it began.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from ansorpy.errors import ForeignFile
from ansorpy.measure.records.rows import R, read_row
from ansorpy.profiler import Activity, profiled

__all__ = [
    "FORMAT", "IN_MEMORY", "connect", "demand_format", "is_read_only", "open_to_read",
    "Store", "plain_errors", "transaction",
]  # fmt: skip

FORMAT = 10
"""Version of the tables; a file of another version is rejected."""

IN_MEMORY = Path(":memory:")
"""The path of a database that lives as long as its connection."""

_APPLICATION_ID = 0x616E7370
_MAGIC = b"SQLite format 3\0"
_ANOTHER = "name another file with --db (db= in Python)"
_BUSY_S = 60.0
_RETRY_S = 0.01
_INTERRUPTED = "user-defined function raised exception"
"""What sqlite3 makes of Ctrl-C in a function of ours, which raises nothing else."""

_TABLES = """
CREATE TABLE definitions (
    id TEXT PRIMARY KEY,
    dag TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE tasks (
    key TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    definition TEXT NOT NULL REFERENCES definitions(id),
    target TEXT NOT NULL,
    threads INTEGER NOT NULL,
    precision TEXT NOT NULL,
    reuse_distance_bytes INTEGER NOT NULL,
    flops REAL NOT NULL,
    class_key TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX tasks_of_class ON tasks (class_key);
CREATE TABLE variants (
    task_key TEXT NOT NULL REFERENCES tasks(key),
    definition TEXT NOT NULL REFERENCES definitions(id),
    name TEXT NOT NULL,
    PRIMARY KEY (task_key, definition)
) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    process TEXT NOT NULL,
    seed INTEGER NOT NULL,
    versions TEXT NOT NULL,
    started_at REAL NOT NULL,
    ended_at REAL,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    task_key TEXT NOT NULL REFERENCES tasks(key),
    definition TEXT NOT NULL REFERENCES definitions(id),
    digest TEXT NOT NULL,
    steps TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions(id),
    attempts INTEGER NOT NULL,
    started_at REAL NOT NULL,
    signature TEXT NOT NULL,
    UNIQUE (task_key, definition, digest)
);
CREATE TABLE results (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials(id),
    session INTEGER NOT NULL REFERENCES sessions(id),
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    seconds TEXT NOT NULL,
    scale REAL,
    median_s REAL,
    spread REAL NOT NULL,
    build_s REAL NOT NULL,
    run_s REAL NOT NULL,
    max_error REAL NOT NULL,
    object_digest TEXT NOT NULL,
    load REAL NOT NULL,
    finished_at REAL NOT NULL,
    signature TEXT NOT NULL
);
CREATE INDEX results_of_trial ON results (trial);
CREATE TABLE proofs (
    definition TEXT NOT NULL,
    digest TEXT NOT NULL,
    version TEXT NOT NULL,
    findings TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (definition, digest, version)
) WITHOUT ROWID;
CREATE TABLE samples (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL UNIQUE REFERENCES trials(id),
    version TEXT NOT NULL,
    prior_s REAL NOT NULL,
    features BLOB NOT NULL
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions(id),
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE models (
    digest TEXT PRIMARY KEY,
    text BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE objects (
    digest TEXT PRIMARY KEY,
    header TEXT NOT NULL,
    code BLOB NOT NULL,
    used_at REAL NOT NULL
) WITHOUT ROWID;
"""
"""Each table follows those to which its rows refer."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the database at *path*, creating it if missing; each ``IN_MEMORY`` is a new one.

    A file that cannot be written is copied into memory, where what is added to it is lost.

    Raises:
        ForeignFile: The file is not a tuning database, is damaged, has another format, or cannot be
            opened or created.
    """
    if path != IN_MEMORY:
        _refuse_other_files(path)
    copied = is_read_only(path)
    with plain_errors(path):
        connection = sqlite3.connect(
            IN_MEMORY if copied else path, timeout=_BUSY_S, isolation_level=None
        )
        try:
            if copied:
                with closing(open_to_read(path)) as source:
                    source.backup(connection)
            _check(connection, path)
            _demand_own_schema(connection, path)
            _demand_whole(connection, path)
            if path != IN_MEMORY and not copied:
                _write_ahead(connection)
            connection.execute("PRAGMA trusted_schema = OFF")
            # A commit survives the death of any process; a power failure may lose the last ones.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    connection.row_factory = sqlite3.Row
    # Invalid UTF-8 must reach the validation of its row instead of raising in sqlite3.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    return connection


def is_read_only(path: Path) -> bool:
    """Whether the database *path* exists but cannot be written: SQLite also needs its folder."""
    if path == IN_MEMORY or not path.exists():
        return False
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open the database *path*, which may be damaged, to read it without changing anything.

    Raises:
        ForeignFile: It is missing, is no SQLite database, or cannot be read at all.
    """
    _refuse_other_files(path)
    address = f"file:{quote(str(path.absolute()))}"
    with plain_errors(path):
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            connection = sqlite3.connect(f"{address}?{mode}", uri=True, isolation_level=None)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:
                # In a folder that cannot be written, only an unchanging file can be opened.
                connection.close()
                if "immutable" in mode:
                    raise
                continue
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                connection.close()
                raise ForeignFile(f"nothing of {path} can be read: {error}") from None
            break
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    return connection


def _demand_own_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file with other tables than ours: a trigger or a view could say what it likes."""
    everything = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    with closing(sqlite3.connect(IN_MEMORY)) as own:
        _create_tables(own)
        expected = own.execute(everything).fetchall()
    if connection.execute(everything).fetchall() != expected:
        raise ForeignFile(
            f"{path} has other tables than a tuning database of format {FORMAT}",
            hint=_repair_hint(path),
        )


def _demand_whole(connection: sqlite3.Connection, path: Path) -> None:
    found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if found != "ok":
        raise ForeignFile(f"{path} is damaged: {found.strip()}", hint=_repair_hint(path))


def _repair_hint(path: Path) -> str:
    return f"save what can be read: ansorpy db repair --db {shlex.quote(str(path))} -o NEW.db"


def _refuse_other_files(path: Path) -> None:
    """Reject other files: SQLite treats a file of a few bytes as an empty database."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise ForeignFile.unreadable(path, error, hint=_ANOTHER) from None
    if start and start != _MAGIC:
        raise ForeignFile(f"{path} is not a tuning database", hint=_ANOTHER)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if _number(connection, "application_id") != _APPLICATION_ID:
        _create(connection, path)
    demand_format(connection, path)


def demand_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise :class:`ForeignFile` unless *path* is a tuning database of this format."""
    with plain_errors(path):
        owner = _number(connection, "application_id")
        found = _number(connection, "user_version")
    if owner != _APPLICATION_ID:
        raise ForeignFile(f"{path} is another program's SQLite file")
    if found != FORMAT:
        raise ForeignFile(
            f"{path} is a tuning database of format {found}; this ansorpy reads format {FORMAT}",
            hint=f"{_ANOTHER}, or use the ansorpy that wrote it",
        )


def _create(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables, unless another process just did; rejects a file with other contents."""
    with transaction(connection, path):
        if _number(connection, "application_id") == _APPLICATION_ID:
            return
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise ForeignFile(
                f"{path} is another program's SQLite file",
                hint=f"{_ANOTHER}; nothing was changed in this one",
            )
        _create_tables(connection)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL, waiting for other processes that do the same.

    The switch takes a read lock first and then a write lock.  While another process writes, SQLite
    refuses that at once: it makes a process wait only if it holds no lock yet.
    """
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_RETRY_S)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Run the block as one transaction; nested uses join the outermost."""
    if connection.in_transaction:
        yield
        return
    try:
        with plain_errors(path), profiled(Activity.RECORD):
            connection.execute("BEGIN IMMEDIATE")
        yield
        with plain_errors(path), profiled(Activity.RECORD):
            connection.execute("COMMIT")
    except BaseException:
        # A transaction left open would swallow later commits.  SQLite may already have ended it,
        # and Ctrl-C may come before it begins or right after.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Convert exceptions of sqlite3 into one plain message about *path*, or into the interrupt."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from None
        raise ForeignFile(
            f"the tuning database {path} cannot be used: {error}",
            hint=f"check the folder, its free space and permissions, or {_ANOTHER}",
        ) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # SQLite's message quotes the damaged text, which sqlite3 decodes strictly.
        raise ForeignFile(
            f"{path} is not a tuning database, or is damaged: {error}", hint=_repair_hint(path)
        ) from None


class Store:
    """A tuning database or a part of it: statements on its *connection*, with plain errors."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def _do(self, sql: str, *values: object) -> sqlite3.Cursor:
        with plain_errors(self.path), profiled(Activity.RECORD):
            return self._connection.execute(sql, values)

    def _rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """All rows, read at once: what is damaged in them is an error of the file."""
        with plain_errors(self.path), profiled(Activity.RECORD):
            return self._connection.execute(sql, values).fetchall()

    def _validated(self, model: type[R], sql: str, *values: object) -> list[R]:
        """All rows, validated as *model*."""
        return [read_row(model, row, self.path) for row in self._rows(sql, *values)]
