"""Measure candidates with a database: skip known trials, and commit new ones as they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ansorpy.ir.task import Task
from ansorpy.measure.build.built import Built
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record, Trial
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Comparing, Runner
from ansorpy.measure.trial_end import OnEnd, TrialEnd, ignore
from ansorpy.schedule.state import State

__all__ = ["measure_recorded"]


def measure_recorded(
    runner: Runner,
    database: Database,
    task: Task,
    candidates: Sequence[State],
    on_end: OnEnd = ignore,
    *,
    in_full: bool = False,
) -> list[MeasureResult]:
    """Results of *candidates*, in order; only candidates without a result in *database* are run.

    Each trial is committed as started right before it runs and its result right after, so a kill
    loses one trial per machine; the code of a new best is stored.  The incumbent is the best trial
    recorded so far; with *in_full* there is none at first, so that a single candidate is fully
    timed though it is slow.  A runner that has timed no program of the task yet compares the first
    ones with the best recorded.  A trial that was CUT does not count: its start is undone.
    """
    database.add_task(task)
    results = {}
    for state in candidates:
        record = database.lookup(task, state)
        if record is not None:
            results[state] = record.result
            on_end(TrialEnd(state, record.result, record=record, is_own=False))
    new = [state for state in candidates if state not in results]
    best = database.best(task.key)
    if best is not None and isinstance(runner, Comparing):
        runner.compare_with(task, partial(_known_program, database, best))
    recorder = _Recorder(database, task, best, on_end)
    incumbent_s = None if best is None or in_full else best.median_s
    try:
        found = runner.measure(task, new, incumbent_s=incumbent_s, observer=recorder)
    except BaseException:
        recorder.abandon()
        raise
    results.update(zip(new, found, strict=True))
    return [results[state] for state in candidates]


def _known_program(database: Database, best: Record) -> tuple[Built, float] | None:
    """The code of *best* and its seconds; None if the code is gone."""
    built = database.objects.get(best.result.object_digest)
    return None if built is None or best.median_s is None else (built, best.median_s)


class _Recorder:
    """An observer that commits trials; several may be in progress at once."""

    def __init__(self, database: Database, task: Task, best: Record | None, on_end: OnEnd) -> None:
        self._database = database
        self._task = task
        self._best_s = None if best is None else best.median_s
        self._on_end = on_end
        self._running: dict[State, Trial] = {}

    def started(self, state: State) -> MeasureResult | None:
        trial = self._database.start(self._task, state)
        if isinstance(trial, Record):
            self._on_end(TrialEnd(state, trial.result, record=trial, is_own=False))
            return trial.result
        self._running[state] = trial
        return None

    def ended(self, end: TrialEnd) -> None:
        result = end.result
        if result.ok and (self._best_s is None or result.median_s < self._best_s):
            self._best_s = result.median_s
            if end.built is not None:
                self._database.objects.put(end.built)
        trial, record = self._running[end.state], None
        if result.kind is TrialKind.CUT:
            self._database.abandon(trial)
        else:
            record = self._database.complete(trial, result)
        del self._running[end.state]  # until here, abandon undoes its start
        self._on_end(replace(end, record=record))

    def abandon(self) -> None:
        """Undo the starts of the trials in progress, because the user stopped the run."""
        while self._running:
            self._database.abandon(self._running.popitem()[1])
