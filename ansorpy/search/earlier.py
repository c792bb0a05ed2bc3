"""Earlier trials of a task, found again as candidates of today's space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.records import Record
from ansorpy.rules.recover import Steps
from ansorpy.schedule.records import steps_from_json
from ansorpy.schedule.state import State
from ansorpy.search.population import Candidate, Rebuilding, StructureSource

__all__ = ["Earlier", "earlier_trials"]


@dataclass(frozen=True)
class Earlier:
    """The finished trials of a task.

    ``candidates`` holds, by number of the record, those whose structure and row were found; the
    default schedule has none, nor have schedules that today's rules would not make.
    """

    task: Task
    database: Database
    records: Sequence[Record]
    candidates: Mapping[int, Candidate]

    @property
    def default(self) -> int | None:
        """The record of the default schedule of the task's own definition; None without one."""
        own = self.database.identify(self.task.dag)
        found = (n for n, r in enumerate(self.records) if r.steps == "[]" and r.definition == own)
        return next(found, None)

    def groups(self, chosen: Sequence[int]) -> list[list[int]]:
        """The *chosen* records that were found again, those of a structure together."""
        grouped: dict[str, list[int]] = {}
        for number in chosen:
            if number in self.candidates:
                key = self.candidates[number].structure.key
                grouped.setdefault(key, []).append(number)
        return list(grouped.values())

    def state(self, number: int) -> State:
        """The program of a record, on the definition it was made for."""
        record = self.records[number]
        if record.definition == self.database.identify(self.task.dag):
            return record.state(self.task.dag)
        return record.state(self.database.definition(record.definition))


def earlier_trials(
    task: Task, source: StructureSource, database: Database, records: Sequence[Record]
) -> Earlier:
    """*records* of *task* with the candidates they were.

    Cost: a structure is made once for all its records; 1,000 records take about a second.
    """
    if not isinstance(source, Rebuilding):
        return Earlier(task, database, records, {})
    names = {database.identify(d.dag): d.name for d in source.definitions}
    grouped: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        if record.definition in names:
            grouped.setdefault(names[record.definition], []).append(number)
    found: dict[int, Candidate] = {}
    for name, numbers in grouped.items():
        schedules: list[Steps] = [steps_from_json(records[n].steps) for n in numbers]
        for group in source.recover(name, schedules):
            for row, member in zip(group.table, group.members, strict=True):
                found[numbers[int(member)]] = Candidate(group.structure, row, 0.0)
    return Earlier(task, database, records, found)
