"""Measure with a database: skip known trials, commit new ones as they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansorpy.ir.task import Task
from ansorpy.measure.built import Built
from ansorpy.measure.database import Database
from ansorpy.measure.records import Record
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.runner import Runner
from ansorpy.schedule.state import State

__all__ = ["Listener", "measure_recorded"]


Listener = Callable[[int, MeasureResult, bool], None]
"""Called with a candidate's index, its result, and whether the database already had it."""


def measure_recorded(
    runner: Runner,
    database: Database,
    task: Task,
    candidates: Sequence[State],
    listener: Listener | None = None,
    *,
    in_full: bool = False,
) -> list[MeasureResult]:
    """Results of *candidates*, in order; only those that *database* does not have are run.

    Each trial is committed as started right before it runs and as done right after, so a kill loses
    one trial per machine; the code of a new best is stored.  The incumbent is the best trial
    recorded so far; with *in_full* there is none, so slow candidates are fully timed too.
    *listener* is called with each result as soon as it is available.  A trial that was CUT does not
    count: its start is taken back.
    """
    tell = listener or (lambda index, result, known: None)
    database.add_task(task)
    known = {}
    for index, state in enumerate(candidates):
        record = database.lookup(task, state)
        if record is not None and record.is_done:
            known[index] = record.result
            tell(index, record.result, True)
    new = [index for index in range(len(candidates)) if index not in known]
    best = database.best(task.key)
    recorder = _Recorder(
        database,
        task,
        [candidates[index] for index in new],
        best,
        lambda index, result, was_known: tell(new[index], result, was_known),
    )
    try:
        results = runner.measure(
            task,
            recorder.candidates,
            incumbent_s=None if best is None or in_full else best.median_s,
            observer=recorder,
        )
    except BaseException:
        recorder.abandon()
        raise
    known.update(zip(new, results, strict=True))
    return [known[index] for index in range(len(candidates))]


class _Recorder:
    """Commits what an observer is told; several trials may be in progress at once."""

    def __init__(
        self,
        database: Database,
        task: Task,
        candidates: Sequence[State],
        best: Record | None,
        listener: Listener,
    ) -> None:
        self.candidates = candidates
        self._database = database
        self._task = task
        self._best_s = None if best is None else best.median_s
        self._listener = listener
        self._running: dict[int, Record] = {}

    def started(self, index: int) -> MeasureResult | None:
        record = self._database.start(self._task, self.candidates[index])
        if record.is_done:
            self._listener(index, record.result, True)
            return record.result
        self._running[index] = record
        return None

    def finished(self, index: int, result: MeasureResult, built: Built | None) -> None:
        if result.ok and (self._best_s is None or result.median_s < self._best_s):
            self._best_s = result.median_s
            if built is not None:
                self._database.objects.put(built)
        record = self._running.pop(index)
        if result.kind is TrialKind.CUT:
            self._database.abandon(record)
        else:
            self._database.complete(record, result)
        self._listener(index, result, False)

    def abandon(self) -> None:
        """Take back the trials in progress, as the user stopped the run."""
        while self._running:
            self._database.abandon(self._running.popitem()[1])
