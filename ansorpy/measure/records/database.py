"""The tuning database: every trial of every task, committed before and after it runs.

The database is one SQLite file in WAL mode.  Only drivers write to it; several may share a file.
Results are appended and never changed; the last result of a trial counts.  A trial that was started
twice and never finished killed its driver twice: it counts as a crash and is not run again.
Results count if this user signed them (:mod:`ansorpy.measure.records.results`).  Nothing in the
file is unpickled, and object code is used only if the result of a trial that counts names it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from cachetools import LRUCache

from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.definitions import DefinitionStore
from ansorpy.measure.records.models import ModelStore
from ansorpy.measure.records.objects import ObjectStore
from ansorpy.measure.records.proofs import ProofStore
from ansorpy.measure.records.results import (
    BELIEVED,
    LAST,
    RECORDS,
    SIGNED,
    Believe,
    is_started,
    key_for,
    register,
    signed_row,
    start_signature,
)
from ansorpy.measure.records.rows import (
    NOW,
    FailureCount,
    Position,
    Record,
    Scheduled,
    TaskRow,
    Trial,
    program_name,
    read_row,
    trial_digest,
)
from ansorpy.measure.records.samples import SampleStore
from ansorpy.measure.records.schema import IN_MEMORY, Store, connect
from ansorpy.measure.records.sessions import SessionStore
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.records import steps_to_json

__all__ = ["Database"]

_LOG = logging.getLogger(__name__)

_Identity: TypeAlias = tuple[str, str, str]
"""Unique key of a trial: task, definition and digest of the steps."""

_KEPT_STATES = 512

_HINTING = TrialKind.OK.value, TrialKind.CHECKED.value
_CRASHED_TWICE = "the driver died twice while this candidate ran"


class Database(Store):
    """The tuning database at *path*, created if missing; None: in memory, until it is closed.

    Args:
        seed, versions: Recorded with this run's session.
        believe: Which results count (:class:`.Believe`); the others are hints (:meth:`hints`).

    Raises:
        ForeignFile: The file is not a tuning database, is damaged or has another format.
        UsageError: Only what this user signed counts, and others can read the key.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        seed: int = 0,
        versions: Mapping[str, str] | None = None,
        believe: Believe = Believe.OWN,
    ) -> None:
        file = IN_MEMORY if path is None else Path(path)
        key = key_for(believe)  # within SQLite, its error would be one of the file
        super().__init__(connect(file), file)
        register(self._connection, believe, key)
        self._states = LRUCache[int, State](_KEPT_STATES)
        self._unreadable: set[int] = set()
        self.definitions = DefinitionStore(self._connection, self.path)
        self.objects = ObjectStore(self._connection, self.path)
        self.proofs = ProofStore(self._connection, self.path)
        self.samples = SampleStore(self._connection, self.path)
        self.models = ModelStore(self._connection, self.path)
        self.sessions = SessionStore(self._connection, self.path, seed, versions)

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
        """End the session, with *failure* as its reason if none was noted, and close the file."""
        self.sessions.end(failure)
        self._connection.close()

    @property
    def position(self) -> Position:
        """The current end of the database, over all sessions."""
        [found] = self._validated(
            Position,
            "SELECT (SELECT coalesce(max(id), 0) FROM results) AS results,"
            " (SELECT coalesce(max(id), 0) FROM samples) AS samples",
        )
        return found

    # Tasks and definitions

    def add_task(self, task: Task) -> None:
        """Record *task*, unless its key is already recorded."""
        if self.task(task.key) is not None:
            return
        with self.sessions.transaction():
            definition = self.definitions.put(task.dag)
            self._do(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                task.key, task.name, definition, _target_text(task), task.threads,
                task.precision, task.reuse_distance_bytes, float(task.flops), task.class_key,
            )  # fmt: skip

    def task(self, key: str) -> TaskRow | None:
        """The recorded task with this key."""
        return next(iter(self._validated(TaskRow, "SELECT * FROM tasks WHERE key = ?", key)), None)

    def tasks(self) -> list[TaskRow]:
        return self._validated(TaskRow, "SELECT * FROM tasks ORDER BY name, key")

    def similar(self, task: Task) -> list[TaskRow]:
        """The other recorded tasks of *task*'s class: other shapes or thread counts."""
        return self._validated(
            TaskRow, "SELECT * FROM tasks WHERE class_key = ? AND key != ? ORDER BY key",
            task.class_key, task.key,
        )  # fmt: skip

    # Trials

    def start(self, task: Task, program: Scheduled) -> Trial:
        """Commit that *program* is about to run; returns its trial.

        The trial is a :class:`Record`, and must not be run, if it was measured before or was
        started twice by drivers that died.  A trial that another living driver is running may be
        run here too; the last one to finish counts.
        """
        self.add_task(task)
        with self.sessions.transaction():
            identity = task.key, self.definitions.put(program.definition), trial_digest(program)
            done = self._record(identity)
            if done is not None:
                return done
            trial = self._trial(identity)
            steps = steps_to_json(program.history)
            if trial is None:
                self._number(identity, steps, start_signature(identity, 1))
            elif not is_started(identity, trial.attempts, trial.signature):
                self._set_starts(trial.id, identity, steps, 1)  # another user's starts do not count
            elif not self.sessions.is_alive(trial.session):
                if trial.attempts >= 2:
                    crash = MeasureResult(TrialKind.CRASH, reason=_CRASHED_TWICE)
                    return self._append(trial.id, identity, trial.session, crash)
                self._set_starts(trial.id, identity, steps, trial.attempts + 1)
            found = self._trial(identity)
        assert found is not None
        return found

    def complete(self, trial: Trial, result: MeasureResult, scale: float | None = None) -> Record:
        """Append a result of a started trial; *scale* as in :class:`Record`.

        If another driver ran the same trial and abandoned it, the trial is recorded again.
        """
        identity = trial.task_key, trial.definition, trial.digest
        with self.sessions.transaction():
            number = self._number(identity, trial.steps, start_signature(identity, 1))
            return self._append(number, identity, self.sessions.current, result, scale)

    def keep_checked(self, task: Task, program: Scheduled, result: MeasureResult) -> None:
        """Record *result*, a CHECKED one: *program* is used until one is timed, and a hint."""
        self.add_task(task)
        with self.sessions.transaction():
            identity = task.key, self.definitions.put(program.definition), trial_digest(program)
            number = self._number(identity, steps_to_json(program.history), "")
            self._append(number, identity, self.sessions.current, result)

    def checked(self, task_key: str) -> list[Record]:
        """A task's programs that were recorded as correct without timing them, in their order."""
        return self._records(
            f"task_key = ? AND kind = ? AND {SIGNED} ORDER BY number",
            task_key, TrialKind.CHECKED.value,
        )  # fmt: skip

    def abandon(self, trial: Trial) -> None:
        """Undo :meth:`start`: the trial did not run, because the user stopped the work.

        A start by another driver is kept.
        """
        if trial.session != self.sessions.begun:
            return
        identity = trial.task_key, trial.definition, trial.digest
        with self.sessions.transaction():
            found = self._trial(identity)
            if found is None or self._record(identity) is not None:
                return
            if found.attempts > 1:
                self._set_starts(found.id, identity, found.steps, found.attempts - 1)
                return
            # Another user's results of the trial stay, as hints.
            self._do("UPDATE trials SET signature = '' WHERE id = ?", found.id)
            self._do(
                "DELETE FROM trials WHERE id = ? AND id NOT IN (SELECT trial FROM results)",
                found.id,
            )

    def lookup(self, task: Task, program: Scheduled, at: Position = NOW) -> Record | None:
        """The record of *program* for *task*; None if it has no result."""
        definition = self.definitions.identify(program.definition)
        return self._record((task.key, definition, trial_digest(program)), at)

    def record(self, number: int) -> Record:
        """The result with this number and its trial.

        Raises:
            ForeignFile: There is no such result, or it does not count.
        """
        found = self._records(f"results.id = ? AND {BELIEVED}", number)
        if found:
            return found[0]
        is_known = self._rows("SELECT 1 FROM results WHERE id = ?", number)
        what = "has no signature of yours on the result" if is_known else "lacks the result"
        raise ForeignFile(f"{self.path} {what} {number}, to which an event refers")

    def measured_by(self, session: int) -> list[Record]:
        """What the run with this number measured, in the order in which it ended."""
        is_timed = f"kind != '{TrialKind.CHECKED.value}'"
        return self._records(f"results.session = ? AND {is_timed} ORDER BY results.id", session)

    def records(self, task_key: str, at: Position = NOW) -> list[Record]:
        """All finished trials of a task, failures included, in the order they were started."""
        return self._records(f"task_key = ? AND {LAST} ORDER BY trials.id", task_key, at.results)

    def measured(self, task_key: str) -> list[Record]:
        """All results of a task's trials, those that later ones replaced too, as they came."""
        return self._records(f"task_key = ? AND {BELIEVED} ORDER BY results.id", task_key)

    def best(self, task_key: str) -> Record | None:
        """A task's fastest correct trial whose schedule can be read back."""
        found = next(iter(self.fastest(task_key, 1)), None)
        if found is None or self.state(found) is not None:
            return found
        return next((r for r in self.fastest(task_key, -1) if self.state(r) is not None), None)

    def fastest(self, task_key: str, n: int, at: Position = NOW) -> list[Record]:
        """The *n* fastest correct trials of a task, best first; -1: all."""
        return self._records(
            f"task_key = ? AND {LAST} AND kind = ? ORDER BY median_s, number LIMIT ?",
            task_key, at.results, TrialKind.OK.value, n,
        )  # fmt: skip

    def hints(self, task_key: str, n: int, at: Position = NOW) -> list[Record]:
        """The *n* programs that are fastest by results that do not count; -1: all.

        Those that were CHECKED and not timed come last.  All may be wrong in everything: what uses
        one builds, checks and measures it first.
        """
        rows = self._rows(
            f"{RECORDS} WHERE task_key = ? AND kind IN (?, ?) AND results.id ="
            " (SELECT max(id) FROM results WHERE trial = trials.id AND id <= ?) AND NOT EXISTS"
            " (SELECT 1 FROM results WHERE trial = trials.id AND results.id <= ?"
            f" AND {BELIEVED}) ORDER BY median_s IS NULL, median_s, number LIMIT ?",
            task_key, *_HINTING, at.results, at.results, n,
        )  # fmt: skip
        found = []
        for row in rows:
            with suppress(ForeignFile):
                found.append(read_row(Record, row, self.path))
        return found

    def unsigned(self, session: int | None = None) -> int:
        """Number of results, of a session or of all, that this user did not sign."""
        [row] = self._rows(
            "SELECT count(*) FROM trials JOIN results ON trial = trials.id"
            f" WHERE NOT {SIGNED} AND (? IS NULL OR results.session = ?)",
            session, session,
        )  # fmt: skip
        return int(row[0])

    def state(self, record: Record, dag: ComputeDAG | None = None) -> State | None:
        """The schedule of *record*, on *dag* or on the definition it was recorded with.

        None if another version wrote it or it is damaged; a warning names the first such trial.
        """
        if record.id in self._unreadable:
            return None
        known = self._states.get(record.id) if dag is None else None
        if known is not None:
            return known
        try:
            state = record.state(dag or self.definitions.get(record.definition))
        except ForeignFile as error:
            if not self._unreadable:
                _LOG.warning(
                    "%s: skipping trial %d and all others like it: %s",
                    self.path, record.id, error.message,
                )  # fmt: skip
            self._unreadable.add(record.id)
            return None
        if dag is None:
            self._states[record.id] = state
        return state

    def tuned(self) -> dict[str, float]:
        """Seconds of each task's fastest correct program among the trials of searches, by task key.

        Predicted programs, which are measured only when they are checked, are left out.
        """
        rows = self._rows(
            "SELECT task_key, min(median_s) FROM trials JOIN results ON trial = trials.id"
            f" WHERE {LAST} AND kind = ? AND typeof(median_s) = 'real'"
            " AND results.session IN (SELECT session FROM events WHERE kind = 'request')"
            " GROUP BY task_key",
            NOW.results, TrialKind.OK.value,
        )  # fmt: skip
        return {str(row[0]): float(row[1]) for row in rows}

    def trials(self, task_key: str, at: Position = NOW, kind: TrialKind | None = None) -> int:
        """Number of finished trials of a task, or of those that ended as *kind*."""
        [row] = self._rows(
            "SELECT count(*) FROM trials JOIN results ON trial = trials.id"
            f" WHERE task_key = ? AND {LAST} AND (? IS NULL OR kind = ?)",
            task_key, at.results, *[None if kind is None else kind.value] * 2,
        )  # fmt: skip
        return int(row[0])

    def failures(self, task_key: str) -> dict[TrialKind, tuple[int, str]]:
        """Count and first full reason of each kind of failure."""
        found = self._validated(
            FailureCount,
            "SELECT kind, count(*) AS n, reason, min(results.id) AS first"
            f" FROM trials JOIN results ON trial = trials.id WHERE task_key = ? AND {LAST}"
            " AND kind != ? GROUP BY kind ORDER BY kind",
            task_key, NOW.results, TrialKind.OK.value,
        )  # fmt: skip
        return {failure.kind: (failure.n, failure.reason) for failure in found}

    def program(self, state: State) -> str:
        """A short name of *state*, recorded or not: the same as :attr:`Trial.program`."""
        return program_name(self.definitions.identify(state.definition), trial_digest(state))

    # Internals

    def _number(self, identity: _Identity, steps: str, signature: str) -> int:
        """The number of a trial, added if need be; *signature* is that of its first start."""
        found = self._trial(identity)
        if found is not None:
            return found.id
        cursor = self._do(
            "INSERT INTO trials (task_key, definition, digest, steps, session, attempts,"
            " started_at, signature) VALUES (?, ?, ?, ?, ?, 1, ?, ?)",
            *identity, steps, self.sessions.current, time.time(), signature,
        )  # fmt: skip
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _set_starts(self, trial: int, identity: _Identity, steps: str, attempts: int) -> None:
        """Record that this run has started a known trial, which was started *attempts* times."""
        self._unreadable.discard(trial)  # its steps are now those of the program
        self._do(
            "UPDATE trials SET steps = ?, session = ?, attempts = ?, signature = ? WHERE id = ?",
            steps, self.sessions.current, attempts, start_signature(identity, attempts), trial,
        )  # fmt: skip

    def _append(
        self,
        trial: int,
        identity: _Identity,
        session: int,
        result: MeasureResult,
        scale: float | None = None,
    ) -> Record:
        number = 1 + self.position.results
        columns = signed_row(number, identity, result, scale)
        marks = ", ".join("?" * (len(columns) + 2))
        self._do(
            f"INSERT INTO results (trial, session, {', '.join(columns)}) VALUES ({marks})",
            trial, session, *columns.values(),
        )  # fmt: skip
        [found] = self._records("results.id = ?", number)
        return found

    def _trial(self, identity: _Identity) -> Trial | None:
        same = "SELECT * FROM trials WHERE task_key = ? AND definition = ? AND digest = ?"
        return next(iter(self._validated(Trial, same, *identity)), None)

    def _record(self, identity: _Identity, at: Position = NOW) -> Record | None:
        found = self._records(
            f"task_key = ? AND definition = ? AND digest = ? AND {LAST}", *identity, at.results
        )
        return next(iter(found), None)

    def _records(self, condition: str, *values: object) -> list[Record]:
        return self._validated(Record, f"{RECORDS} WHERE {condition}", *values)


def _target_text(task: Task) -> str:
    return " ".join(filter(None, (task.target.triple, task.target.cpu, task.target.features)))
