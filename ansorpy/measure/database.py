"""The tuning database: every trial of every task, committed before it runs and after.

One SQLite file in WAL mode.  Only drivers write; several may share a file.  A trial that was
started twice and never finished killed its driver twice: it counts as a crash and is not run
again.  Nothing in the file is ever executed or unpickled.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType

from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.definitions import DefinitionStore
from ansorpy.measure.models import ModelStore
from ansorpy.measure.objects import ObjectStore
from ansorpy.measure.processes import is_running, process_identity
from ansorpy.measure.recent import Recent
from ansorpy.measure.records import Event, Record, Scheduled, Session, TaskRow, read_row
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.samples import SampleStore
from ansorpy.measure.schema import connect, plain_errors, tables_about_trials, transaction
from ansorpy.phases import Part, phase
from ansorpy.schedule.records import steps_to_json
from ansorpy.schedule.state import State

__all__ = ["Database", "trial_digest"]

_LOG = logging.getLogger(__name__)

_KEPT_STATES = 512

_CRASHED_TWICE = "the driver died twice while this candidate ran"


def trial_digest(program: Scheduled) -> str:
    """What identifies a schedule among those of one definition: a digest of its steps."""
    return hashlib.sha256(steps_to_json(program.history).encode()).hexdigest()


class Database:
    """The tuning database at *path*, made when there is none.

    Args:
        seed, versions: Recorded with the session that opening for writing begins.

    Raises:
        ForeignFile: The file is not a tuning database, is damaged or has another format.
    """

    def __init__(
        self, path: Path | str, *, seed: int = 0, versions: Mapping[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        self._connection = connect(self.path)
        self._seed = seed
        self._versions = dict(versions or {})
        self._session: int | None = None
        self._states = Recent[int, State](_KEPT_STATES)
        self._unreadable: set[int] = set()
        self.definitions = DefinitionStore(self._connection, self.path)
        self.objects = ObjectStore(self._connection, self.path)
        self.samples = SampleStore(self._connection, self.path)
        self.models = ModelStore(self._connection, self.path)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close("" if kind is None else kind.__name__)

    def close(self, failure: str = "") -> None:
        """End the session and close the file; *failure* becomes its reason (empty: it finished)."""
        if self._session is not None:
            if failure:
                self.note_ending(failure)
            self._do("UPDATE sessions SET ended_at = ? WHERE id = ?", (time.time(), self._session))
            self._session = None
        self._connection.close()

    def note_ending(self, reason: str) -> None:
        """Record why this run, which is of several searches, measures no more; the last holds."""
        if self._session is not None:
            self._do("UPDATE sessions SET reason = ? WHERE id = ?", (reason, self._session))

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        """The database as it is now, to be read: what anyone writes meanwhile is not in it."""
        with Database(self.path) as past:
            past._do("BEGIN")
            past._do("SELECT 1 FROM sessions LIMIT 1")  # the first read settles what is seen
            yield past

    # Sessions and events

    @property
    def last_event(self) -> int:
        """Number of the latest event of all runs; 0 before there is one."""
        return int(self._do("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])

    @property
    def session(self) -> int:
        """Number of this run; the first use records it."""
        if self._session is None:
            row = self._do(
                "INSERT INTO sessions (process, seed, versions, started_at) VALUES (?, ?, ?, ?)",
                (process_identity(), self._seed, json.dumps(self._versions), time.time()),
            )
            assert row.lastrowid is not None
            self._session = row.lastrowid
        return self._session

    def sessions(self) -> list[Session]:
        """All runs that wrote to this file, in order."""
        rows = self._do("SELECT * FROM sessions ORDER BY id")
        return [read_row(Session, row, self.path) for row in rows]

    def log(self, kind: str, body: Mapping[str, object]) -> None:
        """Append an event (an ask, a tell, a refit, a decision that read a clock) for replay."""
        self._do(
            "INSERT INTO events (session, kind, body) VALUES (?, ?, ?)",
            (self.session, kind, json.dumps(body)),
        )

    def events(self, session: int) -> list[Event]:
        """The events of one run, in order."""
        rows = self._do("SELECT * FROM events WHERE session = ? ORDER BY id", (session,))
        return [read_row(Event, row, self.path) for row in rows]

    # Tasks and definitions

    def add_task(self, task: Task) -> None:
        """Record *task*; nothing happens when its key is known."""
        if self.task(task.key) is not None:
            return
        with self._transaction():
            definition = self.definitions.put(task.dag)
            self._do(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    task.key, task.name, definition, _target_text(task), task.threads,
                    task.precision, task.between_bytes, float(task.flops), task.class_key,
                ),
            )  # fmt: skip

    def task(self, key: str) -> TaskRow | None:
        """The recorded task with this key."""
        row = self._do("SELECT * FROM tasks WHERE key = ?", (key,)).fetchone()
        return None if row is None else read_row(TaskRow, row, self.path)

    def tasks(self) -> list[TaskRow]:
        rows = self._do("SELECT * FROM tasks ORDER BY name, key")
        return [read_row(TaskRow, row, self.path) for row in rows]

    def similar(self, task: Task) -> list[TaskRow]:
        """The other recorded tasks of *task*'s class: other shapes or other threads."""
        rows = self._do(
            "SELECT * FROM tasks WHERE class_key = ? AND key != ? ORDER BY key",
            (task.class_key, task.key),
        )
        return [read_row(TaskRow, row, self.path) for row in rows]

    def add_variants(self, task: Task, definitions: Mapping[str, ComputeDAG]) -> None:
        """Record what the ways to compute *task* are called."""
        self.add_task(task)
        with self._transaction():
            for name, dag in definitions.items():
                self._do(
                    "INSERT OR IGNORE INTO variants VALUES (?, ?, ?)",
                    (task.key, self.definitions.put(dag), name),
                )

    def variants(self, task_key: str) -> dict[str, str]:
        """Id of a definition -> its name, of those :meth:`add_variants` recorded for a task."""
        rows = self._do("SELECT definition, name FROM variants WHERE task_key = ?", (task_key,))
        return {str(row["definition"]): str(row["name"]) for row in rows}

    def definition(self, identifier: str) -> ComputeDAG:
        """The recorded definition with this id; raises :class:`ForeignFile` when it is damaged."""
        return self.definitions.get(identifier)

    # Trials

    def start(self, task: Task, program: Scheduled) -> Record:
        """Commit that *program* is about to run; returns its record.

        The record is already done, and must not be run, when it was measured before or was
        started twice by drivers that died.  A trial that another living driver is running may
        be run here too; the first to finish is kept.
        """
        self.add_task(task)
        with self._transaction():
            definition = self.definitions.put(program.base)
            digest = trial_digest(program)
            record = self._find(task.key, definition, digest)
            if record is None:
                steps = steps_to_json(program.history)
                return self.record(self._insert(task.key, definition, digest, steps))
            if record.is_done or self._runs_elsewhere(record):
                return record
            if record.attempts >= 2:
                self._complete(record.id, MeasureResult(TrialKind.CRASH, reason=_CRASHED_TWICE))
            else:
                self._do(
                    "UPDATE trials SET attempts = attempts + 1, session = ? WHERE id = ?",
                    (self.session, record.id),
                )
        return self.record(record.id)

    def complete(self, record: Record, result: MeasureResult) -> None:
        """Commit the outcome of a started trial; one that is done keeps its first outcome.

        Where another driver ran it too and took back its start, the trial is recorded anew.
        """
        identity = record.task_key, record.definition, record.digest
        with self._transaction():
            found = self._find(*identity)
            number = self._insert(*identity, record.steps) if found is None else found.id
            self._complete(number, result)

    def retimed(self, record: Record, result: MeasureResult) -> None:
        """Replace the times of a correct trial by those of a fairer comparison with others.

        An event keeps the former ones, so that a run can be replayed from what it knew.
        """
        with self._transaction():
            before = self.record(record.id)
            if not before.ok:
                return
            self.log("retimed", {"record": record.id, "seconds": before.seconds})
            self._set_times(record.id, result)

    def abandon(self, record: Record) -> None:
        """Take back :meth:`start`: the trial did not run, because the user stopped the work.

        A start of another driver stands.
        """
        if record.session != self._session:
            return
        with self._transaction():
            self._do(
                "UPDATE trials SET attempts = attempts - 1 WHERE id = ? AND status = 'started'",
                (record.id,),
            )
            self._do("DELETE FROM trials WHERE id = ? AND attempts = 0", (record.id,))

    def lookup(self, task: Task, program: Scheduled) -> Record | None:
        """The record of *program* for *task*, done or not."""
        definition = self.definitions.identify(program.base)
        return self._find(task.key, definition, trial_digest(program))

    def record(self, number: int) -> Record:
        """The trial with this number, which must be there."""
        row = self._do("SELECT * FROM trials WHERE id = ?", (number,)).fetchone()
        return read_row(Record, row, self.path)

    def correct(self) -> list[tuple[str, float, int]]:
        """Task, seconds and number of all correct trials, in the order they were started."""
        rows = self._do(
            "SELECT task_key, median_s, id FROM trials WHERE status = 'done' AND kind = ?"
            " AND median_s IS NOT NULL ORDER BY id",
            (TrialKind.OK.value,),
        )
        return [(str(row[0]), float(row[1]), int(row[2])) for row in rows]

    def records(self, task_key: str) -> list[Record]:
        """All finished trials of a task, failures included, in the order they were started."""
        rows = self._do(
            "SELECT * FROM trials WHERE task_key = ? AND status = 'done' ORDER BY id", (task_key,)
        )
        return [read_row(Record, row, self.path) for row in rows]

    def best(self, task_key: str) -> Record | None:
        """The fastest correct trial of a task whose schedule can be read back."""
        found = next(iter(self.fastest(task_key, 1)), None)
        if found is None or self.state(found) is not None:
            return found
        return next((r for r in self.fastest(task_key, -1) if self.state(r) is not None), None)

    def fastest(self, task_key: str, n: int) -> list[Record]:
        """The *n* fastest correct trials of a task, best first."""
        rows = self._do(
            "SELECT * FROM trials WHERE task_key = ? AND status = 'done' AND kind = ?"
            " ORDER BY median_s, id LIMIT ?",
            (task_key, TrialKind.OK.value, n),
        )
        return [read_row(Record, row, self.path) for row in rows]

    def state(self, record: Record, dag: ComputeDAG | None = None) -> State | None:
        """The schedule of *record*, on *dag* or on the definition it was recorded with.

        None where another version wrote it, or it is damaged: the first such is warned of.
        """
        if record.id in self._unreadable:
            return None
        known = self._states.get(record.id) if dag is None else None
        if known is not None:
            return known
        try:
            state = record.state(dag or self.definition(record.definition))
        except ForeignFile as error:
            if not self._unreadable:
                _LOG.warning(
                    "%s: trial %d is passed over, and all others like it: %s",
                    self.path, record.id, error.message,
                )  # fmt: skip
            self._unreadable.add(record.id)
            return None
        if dag is None:
            self._states.put(record.id, state)
        return state

    def tuned(self) -> dict[str, float]:
        """Task -> seconds of the fastest correct program, of trials made by searches.

        Programs that were predicted, and measured as they were checked, are left out.
        """
        rows = self._do(
            "SELECT task_key, min(median_s) FROM trials WHERE status = 'done' AND kind = ?"
            " AND session IN (SELECT session FROM events WHERE kind = 'request')"
            " GROUP BY task_key",
            (TrialKind.OK.value,),
        )
        return {str(row[0]): float(row[1]) for row in rows}

    def trials(self, task_key: str) -> int:
        """How many trials of a task are spent."""
        row = self._do(
            "SELECT count(*) FROM trials WHERE task_key = ? AND status = 'done'", (task_key,)
        ).fetchone()
        return int(row[0])

    def failures(self, task_key: str) -> dict[TrialKind, tuple[int, str]]:
        """Count and first full reason of each kind of failure."""
        rows = self._do(
            "SELECT kind, count(*) AS n, reason, min(id) FROM trials WHERE task_key = ?"
            " AND status = 'done' AND kind != ? GROUP BY kind ORDER BY kind",
            (task_key, TrialKind.OK.value),
        )
        return {TrialKind(row["kind"]): (int(row["n"]), str(row["reason"])) for row in rows}

    def known(self) -> dict[str, list[int]]:
        """By table, the numbers of the trials it has rows of, ascending; finished ones only."""
        about = tables_about_trials(self._connection)
        found = {"trials": "SELECT id FROM trials WHERE status = 'done' ORDER BY id"}
        found |= {table: f"SELECT {at} FROM {table} ORDER BY {at}" for table, at in about}
        return {table: [int(row[0]) for row in self._do(sql)] for table, sql in found.items()}

    def program(self, state: State) -> str:
        """A short name of *state*: the beginnings of its definition's id and of its digest."""
        definition = self.definitions.identify(state.base)
        return f"{definition[:8]}-{trial_digest(state)[:16]}"

    # Inside

    def _set_times(self, record_id: int, result: MeasureResult) -> None:
        self._do(
            "UPDATE trials SET seconds = ?, median_s = ?, spread = ? WHERE id = ?",
            (json.dumps(result.seconds), result.median_s, result.spread, record_id),
        )

    def _insert(self, task_key: str, definition: str, digest: str, steps: str) -> int:
        cursor = self._do(
            "INSERT INTO trials (task_key, definition, digest, steps, session, status, attempts,"
            " started_at) VALUES (?, ?, ?, ?, ?, 'started', 1, ?)",
            (task_key, definition, digest, steps, self.session, time.time()),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _complete(self, record_id: int, result: MeasureResult) -> None:
        finite = result.max_error != float("inf")
        self._do(
            "UPDATE trials SET status = 'done', kind = ?, reason = ?, seconds = ?, median_s = ?,"
            " spread = ?, build_s = ?, run_s = ?, max_error = ?, object_digest = ?, load = ?,"
            " finished_at = ? WHERE id = ? AND status = 'started'",
            (
                result.kind.value, result.reason, json.dumps(result.seconds),
                result.median_s if result.seconds else None, result.spread, result.build_s,
                result.run_s, result.max_error if finite else -1.0, result.object_digest,
                os.getloadavg()[0], time.time(), record_id,
            ),
        )  # fmt: skip

    def _runs_elsewhere(self, record: Record) -> bool:
        """True when the session that started *record* is this one or still alive."""
        if record.session == self._session:
            return True
        row = self._do("SELECT * FROM sessions WHERE id = ?", (record.session,)).fetchone()
        owner = read_row(Session, row, self.path)
        return owner.ended_at is None and is_running(owner.process)

    def _find(self, task_key: str, definition: str, digest: str) -> Record | None:
        row = self._do(
            "SELECT * FROM trials WHERE task_key = ? AND definition = ? AND digest = ?",
            (task_key, definition, digest),
        ).fetchone()
        return None if row is None else read_row(Record, row, self.path)

    def _do(self, sql: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        with plain_errors(self.path), phase(Part.RECORD):
            return self._connection.execute(sql, values)

    def _transaction(self) -> AbstractContextManager[None]:
        return transaction(self._connection, self.path)


def _target_text(task: Task) -> str:
    return " ".join(filter(None, (task.target.triple, task.target.cpu, task.target.features)))
