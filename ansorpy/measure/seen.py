"""What a run knows of a database that others write to as well."""

from __future__ import annotations

from bisect import insort

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.records import Record, TaskRow

__all__ = ["Seen"]


class Seen:
    """The correct trials finished when a run began, and those it made or was told of since.

    Other tuners' trials are left out, and times they compare anew: what a run does must not depend
    on when they did what, or it could not be replayed.

    Args:
        past: *database* as it was when the run began; as it is, when None.
    """

    def __init__(self, database: Database, past: Database | None = None) -> None:
        self._database = database
        self._numbers: set[int] = set()
        self._ranked: dict[str, list[tuple[float, int, int]]] = {}
        """By task: seconds, a count of trials before, and the trial's number; fastest first."""
        for key, seconds, number in (past or database).correct():
            self.add(key, seconds, number)

    def add(self, task_key: str, seconds: float, number: int) -> None:
        """The run has heard of this correct trial."""
        if number not in self._numbers:
            self._numbers.add(number)
            # Numbers differ in a replay; the order in which trials came does not.
            insort(self._ranked.setdefault(task_key, []), (seconds, len(self._numbers), number))

    def count(self, task_key: str) -> int:
        """How many there are of a task."""
        return len(self._ranked.get(task_key, []))

    def fastest(self, task_key: str, n: int) -> list[Record]:
        """The *n* fastest of a task, best first."""
        return [self._database.record(number) for *_, number in self._ranked.get(task_key, [])[:n]]

    def similar(self, task: Task) -> list[TaskRow]:
        """The other tasks of *task*'s class of which there is any."""
        return [row for row in self._database.similar(task) if row.key in self._ranked]

    def variants(self, task_key: str) -> dict[str, str]:
        """Id of a definition -> its name, of those recorded for a task."""
        return self._database.variants(task_key)

    def definition(self, identifier: str) -> ComputeDAG:
        """The recorded definition with this id."""
        return self._database.definition(identifier)
