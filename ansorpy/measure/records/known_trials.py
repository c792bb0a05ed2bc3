"""A run's view of a database that other processes also write to."""

from __future__ import annotations

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Position, Record, Scheduled, TaskRow, trial_digest
from ansorpy.measure.result import TrialKind

__all__ = ["KnownTrials"]


class KnownTrials:
    """The trials a database had when a run began, and those the run measured or received since.

    Trials that other tuners add meanwhile are left out: a run that depended on the timing of other
    processes could not be replayed.

    Args:
        began: The position of *database* when the run began; None: it begins now.
    """

    def __init__(self, database: Database, began: Position | None = None) -> None:
        self.database = database
        self.began = began or database.position
        self._measured: dict[tuple[str, str, str], Record] = {}
        """Records measured or received since then, by task, definition and digest."""

    def add(self, record: Record) -> None:
        """Add *record*, which the run has measured or received."""
        self._measured[record.task_key, record.definition, record.digest] = record

    def lookup(self, task: Task, program: Scheduled) -> Record | None:
        """The record of *program* for *task*; None if the run knows none."""
        definition = self.database.definitions.identify(program.definition)
        measured = self._measured.get((task.key, definition, trial_digest(program)))
        return measured or self.database.lookup(task, program, self.began)

    def records(self, task_key: str) -> list[Record]:
        """All trials of a task from before the run, in the order they were started."""
        return self.database.records(task_key, self.began)

    def correct(self, task_key: str) -> int:
        """Number of correct trials of a task."""
        return self.database.trials(task_key, self.began, TrialKind.OK) + len(self._ok(task_key))

    def fastest(self, task_key: str, n: int) -> list[Record]:
        """The *n* fastest of a task, best first."""
        found = self.database.fastest(task_key, n, self.began) + self._ok(task_key)
        return sorted(found, key=lambda r: (r.result.median_s, r.number))[:n]

    def hints(self, task_key: str, n: int) -> list[Record]:
        """The *n* fastest programs of a task by results that do not count, from before the run."""
        return self.database.hints(task_key, n, self.began)

    def similar(self, task: Task) -> list[TaskRow]:
        """The other tasks of *task*'s class that have correct trials."""
        return [row for row in self.database.similar(task) if self.correct(row.key)]

    def variants(self, task_key: str) -> dict[str, str]:
        """Names of the definitions recorded for a task, by their ids."""
        return self.database.definitions.variants(task_key)

    def definition(self, identifier: str) -> ComputeDAG:
        """The recorded definition with this id."""
        return self.database.definitions.get(identifier)

    def _ok(self, task_key: str) -> list[Record]:
        return [r for (key, *_), r in self._measured.items() if key == task_key and r.ok]
