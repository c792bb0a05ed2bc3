"""What must hold of a tuning database, whatever has happened to its tuners."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.tasks.replay import rerun
from tests.campaigns.faults.processes import ended, start
from tests.campaigns.faults.tuner import options

__all__ = [
    "Decisions",
    "Kept",
    "assert_replays",
    "assert_unlocked",
    "decided",
    "done",
    "undisturbed",
]

Decisions = list[tuple[str, str]]
"""The events of a run: what it asked for, was told and found."""


def done(path: Path) -> dict[int, tuple[object, ...]]:
    """The finished trials in the database *path*, read without ansorpy."""
    rows = _rows(
        path,
        "SELECT results.id, task_key, definition, digest, kind, seconds, scale, attempts,"
        " results.signature FROM results JOIN trials ON trial = trials.id WHERE scale IS NULL",
    )
    return {row[0]: row[1:] for row in rows}


def _rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What *sql* selects; nothing from a database whose tables were never made."""
    with closing(sqlite3.connect(path, timeout=120)) as raw:
        if not raw.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return []
        return raw.execute(sql).fetchall()


@dataclass
class Kept:
    """Watches that the database *path* keeps what was committed, and counts nothing twice."""

    path: Path

    def __post_init__(self) -> None:
        self._rows: dict[int, tuple[object, ...]] = {}

    def check(self, promised: int = 0, spent: int | None = None) -> None:
        """Raise :class:`AssertionError` unless all that was there is, with *promised* trials.

        *spent* is the exact number of trials, at the end of a run.
        """
        rows = done(self.path) if self.path.exists() else {}
        assert _is_intact(self.path), "the database is damaged"
        lost = {number for number, row in self._rows.items() if rows.get(number) != row}
        assert not lost, f"committed trials were lost or changed: {lost}"
        assert len(rows) >= promised, f"{promised} trials were committed, {len(rows)} are there"
        programs = [row[:3] for row in rows.values()]
        assert len(programs) == len(set(programs)), "a trial was counted twice"
        assert spent is None or len(rows) == spent, f"{len(rows)} trials were spent of {spent}"
        self._rows = rows


def _is_intact(path: Path) -> bool:
    if not path.exists():
        return True
    with closing(sqlite3.connect(path, timeout=120)) as raw:
        found = raw.execute("PRAGMA integrity_check").fetchall()
    return found == [("ok",)]


def assert_unlocked(folder: Path) -> None:
    """No lock in *folder* is held."""
    for path in folder.glob("ansorpy-*"):
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def decided(path: Path, run: int) -> Decisions:
    """The events of number *run*."""
    rows = _rows(path, f"SELECT kind, body FROM events WHERE session = {run} ORDER BY id")
    return [(str(kind), str(body)) for kind, body in rows]


class _NoBuilds:
    """Builds nothing: only histories are compared."""

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        return [MeasureResult(TrialKind.BUILD_ERROR)] * len(states)

    def close(self) -> None: ...


def assert_replays(path: Path, seed: int) -> None:
    """The last run that searched replays to its last event."""
    found = _rows(path, "SELECT max(session) FROM events WHERE kind = 'request'")
    run = found[0][0] if found else None
    if run is None:
        return
    with Database(path) as database:
        [again] = rerun(database, run, _NoBuilds(), options=options(seed))
    assert again.divergence == "" and again.followed == again.events, again.divergence


@cache
def undisturbed(trials: int, seed: int) -> Decisions:
    """The events of a tuner from no records that nothing has happened to."""
    with TemporaryDirectory(prefix="ansorpy-faults-") as folder:
        path = Path(folder, "tune.db")
        ended(start(path, trials, seed))
        return decided(path, 1)
