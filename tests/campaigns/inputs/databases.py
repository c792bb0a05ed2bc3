"""Damaged databases: bytes of the file, values of rows, and tables of other kinds."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaigns.inputs.changes import INTEGERS, REALS, TEXTS, changed_bytes, one_of
from tests.campaigns.inputs.sound import DATABASE, NETWORK, sound_files

__all__ = ["damaged_database"]

Rng = np.random.Generator

_IN_BYTES = 0.35
_SCHEMA = (
    "CREATE TABLE own (x)",
    "CREATE VIEW own AS SELECT * FROM tasks",
    "CREATE TRIGGER own AFTER INSERT ON sessions BEGIN DELETE FROM results; END",
    "DROP INDEX results_of_trial",
    "DROP TABLE events",
    "ALTER TABLE tasks ADD COLUMN own TEXT",
    "PRAGMA user_version = 3",
    "PRAGMA user_version = 99999",
    "PRAGMA application_id = 7",
    "PRAGMA journal_mode = DELETE",
)
_READING = (
    ("report",), ("report", "--json"), ("db",), ("db", "runs"), ("db", "runs", "--json"),
    ("db", "repair", "-o", "new.db"),
)  # fmt: skip
_SLOW = (
    ("show", NETWORK, "--threads", "1"),
    ("export", NETWORK, "-o", "new.so", "--threads", "1"),
    ("dataset", "train", DATABASE, "-o", "model.txt"),
    ("db", "replay"),
    ("run", NETWORK, "--threads", "1"),
)
_IS_SLOW = 0.015
"""Share of the verbs that prove, build, measure or train, which takes seconds."""


def damaged_database(rng: Rng, folder: Path) -> list[str]:
    """Write a damaged database and its network into *folder*; returns the command that reads it."""
    for name in (DATABASE, NETWORK):
        shutil.copy(sound_files() / name, folder)
    path = folder / DATABASE
    if rng.random() < _IN_BYTES:
        path.write_bytes(changed_bytes(path.read_bytes(), rng))
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            for _ in range(int(rng.integers(1, 5))):
                _change(connection, rng)
    command = one_of(rng, _SLOW if rng.random() < _IS_SLOW else _READING)
    return [*command] if DATABASE in command else [*command, "--db", DATABASE]


def _change(connection: sqlite3.Connection, rng: Rng) -> None:
    """Change a value, leave out or repeat a row, or change the schema; some changes are refused."""
    try:
        if rng.random() < 0.07:
            connection.execute(one_of(rng, _SCHEMA))
        else:
            _change_row(connection, rng)
    except sqlite3.DatabaseError:
        return  # of constraints of the table, or of an earlier change


def _change_row(connection: sqlite3.Connection, rng: Rng) -> None:
    tables = [name for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )]  # fmt: skip
    table = one_of(rng, sorted(tables))
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    if not rows:
        return
    row, at = list(one_of(rng, rows)), int(rng.integers(len(columns)))
    that = " AND ".join(f"{column} IS ?" for column in columns)
    way = rng.random()
    if way < 0.12:
        connection.execute(f"DELETE FROM {table} WHERE {that}", row)
    elif way < 0.2:
        row[0] = _other(row[0], rng)
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    else:
        value = _other(row[at], rng)
        connection.execute(f"UPDATE {table} SET {columns[at]} = ? WHERE {that}", [value, *row])


def _other(old: Any, rng: Rng) -> Any:
    """Another value: like *old* but changed, of another type, or from a list of odd ones."""
    way = int(rng.integers(5))
    if way == 0:
        return one_of(rng, (*INTEGERS, *REALS))
    if way == 1:
        return one_of(rng, (*TEXTS, None, b"\xff\x00"))
    if isinstance(old, str):
        return changed_bytes(old.encode(), rng).decode(errors="replace")
    if isinstance(old, bytes):
        return changed_bytes(old, rng)
    if isinstance(old, int | float):
        return one_of(rng, (old + 1, -old, old * 1000, old / 7, 0))
    return "x"
