"""Earlier trials of a task, recovered as candidates of the current space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ansorpy.errors import ForeignFile
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record
from ansorpy.schedule.state import State
from ansorpy.schedule.steps.base import Step
from ansorpy.search.population import Candidate, Rebuilding, SketchSource

__all__ = ["ResumedTrials", "resumed_trials"]


@dataclass(frozen=True)
class ResumedTrials:
    """The finished trials of a task.

    ``candidates`` maps a record's number to its candidate.  It leaves out the default schedule,
    schedules that the current rules would not generate, and unreadable ones.
    """

    task: Task
    database: Database
    records: Sequence[Record]
    candidates: Mapping[int, Candidate]

    @property
    def default(self) -> int | None:
        """The record of the default schedule of the task's own definition; None without one."""
        own = self.database.definitions.identify(self.task.dag)
        found = (n for n, r in enumerate(self.records) if r.steps == "[]" and r.definition == own)
        return next(found, None)

    def state(self, number: int) -> State | None:
        """The program of a record, on the definition it was made for; None if it is unreadable."""
        record = self.records[number]
        is_own = record.definition == self.database.definitions.identify(self.task.dag)
        return self.database.state(record, self.task.dag if is_own else None)


def resumed_trials(
    task: Task, source: SketchSource, database: Database, records: Sequence[Record]
) -> ResumedTrials:
    """Recover the candidates of *records* of *task*.

    Cost: each placed sketch is made once for all its records; 1,000 records take about a second.
    """
    if not isinstance(source, Rebuilding):
        return ResumedTrials(task, database, records, {})
    names = {database.definitions.identify(d.dag): d.name for d in source.definitions}
    grouped: dict[str, list[int]] = {}
    steps = _readable(records)
    for number in steps:
        if records[number].definition in names:
            grouped.setdefault(names[records[number].definition], []).append(number)
    found: dict[int, Candidate] = {}
    for name, numbers in grouped.items():
        for group in source.recover(name, [steps[n] for n in numbers]):
            for row, member in zip(group.table, group.members, strict=True):
                found[numbers[int(member)]] = Candidate(group.sketch, row, 0.0)
    return ResumedTrials(task, database, records, found)


def _readable(records: Sequence[Record]) -> dict[int, Sequence[Step]]:
    """The schedules by record number, except those written by an incompatible version."""
    found: dict[int, Sequence[Step]] = {}
    for number, record in enumerate(records):
        with suppress(ForeignFile):
            found[number] = record.schedule()
    return found
