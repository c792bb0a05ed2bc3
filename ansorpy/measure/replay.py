"""Answers from records instead of from the machine: search without hardware and without noise."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.runner import Observer
from ansorpy.schedule.state import State

__all__ = ["ReplayRunner"]


class ReplayRunner:
    """A :class:`~ansorpy.measure.runner.Runner` that looks every candidate up in *database*.

    A candidate that was never measured is NOT_RECORDED, with its place in the reason; a fully
    measured grid has none.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def measure(
        self,
        task: Task,
        candidates: Sequence[State],
        *,
        incumbent_s: float | None,
        observer: Observer | None = None,
    ) -> list[MeasureResult]:
        """The recorded results; *incumbent_s* changes nothing, what was recorded stands."""
        results = []
        for index, state in enumerate(candidates):
            known = None if observer is None else observer.started(index)
            result = self._recorded(task, state) if known is None else known
            if observer is not None and known is None:
                observer.finished(index, result, None)
            results.append(result)
        return results

    def _recorded(self, task: Task, state: State) -> MeasureResult:
        record = self._database.lookup(task, state)
        if record is None or not record.is_done:
            return MeasureResult(
                TrialKind.NOT_RECORDED, reason=f"{self._database.path} has no such trial"
            )
        return record.result
