"""Sessions of a tuning database: the runs that wrote to it, and their events, for replay."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ansorpy.measure.records.rows import EventRow, Session
from ansorpy.measure.records.schema import Store, is_read_only, transaction
from ansorpy.measure.workers.processes import described_process, is_running, process_identity

__all__ = ["SessionStore", "warn_of_writers"]

_LOG = logging.getLogger(__name__)
_named: set[tuple[Path, int]] = set()
"""The databases and writers that this process was warned of."""


def warn_of_writers(path: Path, processes: list[int]) -> None:
    """Warn that *processes* write to the database *path* too, once of each process."""
    new = [pid for pid in processes if (path, pid) not in _named]
    _named.update((path, pid) for pid in new)
    if new:
        others = ", ".join(map(described_process, new))
        _LOG.warning("%s is also written by %s; all keep every trial", path, others)


class SessionStore(Store):
    """All sessions; *seed* and *versions* are recorded with that of this run."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        seed: int = 0,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(connection, path)
        self._seed = seed
        self._versions = dict(versions or {})
        self.begun: int | None = None
        """Number of this run's session, once something was recorded."""

    @property
    def current(self) -> int:
        """Number of this run's session, which is recorded on first use."""
        if self.begun is None:
            if is_read_only(self.path):
                _LOG.warning("%s cannot be written: what this run records is lost", self.path)
            row = self._do(
                "INSERT INTO sessions (process, seed, versions, started_at) VALUES (?, ?, ?, ?)",
                process_identity(), self._seed, json.dumps(self._versions), time.time(),
            )  # fmt: skip
            assert row.lastrowid is not None
            self.begun = row.lastrowid
        return self.begun

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """As :func:`.transaction`; a session that is recorded in one that fails has not begun."""
        begun = self.begun
        try:
            with transaction(self._connection, self.path):
                yield
        except BaseException:
            self.begun = begun
            raise

    def all(self) -> list[Session]:
        """All runs that wrote to this file, in order."""
        return self._validated(Session, "SELECT * FROM sessions ORDER BY id")

    def others(self) -> list[int]:
        """The processes of the other runs that are writing to this file now."""
        rows = self._rows("SELECT process FROM sessions WHERE ended_at IS NULL AND id IS NOT ?",
                        self.begun)  # fmt: skip
        running = {str(row["process"]) for row in rows} - {process_identity()}
        return sorted(int(p.split(":")[1]) for p in running if is_running(p))

    def is_alive(self, session: int) -> bool:
        """Whether the run with this number is this one, or still running."""
        if session == self.begun:
            return True
        owners = self._validated(Session, "SELECT * FROM sessions WHERE id = ?", session)
        return any(o.ended_at is None and is_running(o.process) for o in owners)

    def log(self, kind: str, body: Mapping[str, object]) -> None:
        """Append an event (an ask, a tell, a refit, a reading of the clock) for replay."""
        self._do(
            "INSERT INTO events (session, kind, body) VALUES (?, ?, ?)",
            self.current, kind, json.dumps(body),
        )  # fmt: skip

    def events(self, session: int) -> list[EventRow]:
        """The events of one run, in order."""
        return self._validated(
            EventRow, "SELECT * FROM events WHERE session = ? ORDER BY id", session
        )

    def note_ending(self, reason: str) -> None:
        """Record why the search stopped; the session keeps the last reason.

        An empty reason means that a search has started again.
        """
        if self.begun is not None:
            self._do("UPDATE sessions SET reason = ? WHERE id = ?", reason, self.begun)

    def end(self, failure: str) -> None:
        """End this run's session.

        *failure* (empty: it finished) becomes its reason if none was noted: the reason why the last
        search stopped is more informative than an error raised after it.
        """
        if self.begun is not None:
            self._do(
                "UPDATE sessions SET ended_at = ?, reason = coalesce(nullif(reason, ''), ?)"
                " WHERE id = ?",
                time.time(), failure, self.begun,
            )  # fmt: skip
            self.begun = None
