"""What a run knows of a database that other processes also write to."""

from __future__ import annotations

from bisect import insort

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.records import Record, TaskRow

__all__ = ["Seen"]


class Seen:
    """The correct trials finished when a run began, plus those it made or was told of since.

    Trials of other tuners and times they replace are left out: what a run does must not depend on
    when they did what, or it could not be replayed.

    ``retimed`` are the numbers of those that earlier runs timed again.

    Args:
        past: *database* as it was when the run began; None: as it is now.
    """

    def __init__(self, database: Database, past: Database | None = None) -> None:
        self._database = database
        self._numbers: set[int] = set()
        self._ranked: dict[str, list[tuple[float, int, int]]] = {}
        """By task: seconds, number of trials seen so far, and the trial's number; fastest first."""
        self.retimed = (past or database).retimed_trials()
        for key, seconds, number in (past or database).correct():
            self.add(key, seconds, number)

    def add(self, task_key: str, seconds: float, number: int) -> bool:
        """Add a correct trial that the run has learned of; True if it was not there yet."""
        if number in self._numbers:
            return False
        self._numbers.add(number)
        # Trial numbers differ in a replay; the order in which trials were added does not.
        insort(self._ranked.setdefault(task_key, []), (seconds, len(self._numbers), number))
        return True

    def count(self, task_key: str) -> int:
        """Number of correct trials of a task."""
        return len(self._ranked.get(task_key, []))

    def fastest(self, task_key: str, n: int) -> list[Record]:
        """The *n* fastest of a task, best first."""
        return [self._database.record(number) for *_, number in self._ranked.get(task_key, [])[:n]]

    def similar(self, task: Task) -> list[TaskRow]:
        """The other tasks of *task*'s class that have correct trials."""
        return [row for row in self._database.similar(task) if row.key in self._ranked]

    def variants(self, task_key: str) -> dict[str, str]:
        """Names of the definitions recorded for a task, by their ids."""
        return self._database.variants(task_key)

    def definition(self, identifier: str) -> ComputeDAG:
        """The recorded definition with this id."""
        return self._database.definition(identifier)
