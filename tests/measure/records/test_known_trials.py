"""A run sees the trials that it began with and its own, whatever others write meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure.definitions import matmul, task_of, tiled

FIRST, SECOND = (task_of(matmul(n, 8, 8)) for n in (16, 32))


def measured(database: Database, task: Task, times: Sequence[float], first: int = 1) -> None:
    """Trials of *task* with these times, by the factors from *first* on; 0: it crashed."""
    for factor, seconds in enumerate(times, first):
        ok = MeasureResult(TrialKind.OK, (seconds,))
        result = ok if seconds else MeasureResult(TrialKind.CRASH)
        database.complete(database.start(task, tiled(task.dag, factor)), result)


def times(known: KnownTrials, task: Task, n: int = 9) -> list[float | None]:
    return [record.median_s for record in known.fastest(task.key, n)]


def found(database: Database, task: Task, factor: int) -> Record:
    record = database.lookup(task, tiled(task.dag, factor))
    assert record is not None
    return record


def test_others_trials_are_not_known_until_they_are_told(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database, Database(tmp_path / "a.db") as other:
        measured(database, FIRST, [3.0, 0.0, 1.0, 2.0])
        known = KnownTrials(database)
        measured(other, FIRST, [0.5], first=7)
        measured(other, SECOND, [1.0])
        assert times(known, FIRST) == [1.0, 2.0, 3.0] and times(known, FIRST, 2) == [1.0, 2.0]
        assert times(known, SECOND) == [] and known.similar(FIRST) == []
        assert known.lookup(SECOND, tiled(SECOND.dag, 1)) is None
        told = found(database, SECOND, 1)
        known.add(told)
        assert known.lookup(SECOND, tiled(SECOND.dag, 1)) == told
        assert times(known, SECOND) == [1.0]
        assert [known.correct(task.key) for task in (FIRST, SECOND)] == [3, 1]
        assert [row.key for row in known.similar(FIRST)] == [SECOND.key]
        assert len(known.records(FIRST.key)) == 4 and known.records(SECOND.key) == []


def test_times_are_those_there_were_though_later_ones_replaced_them(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        measured(database, FIRST, [3.0, 1.0])
        known = KnownTrials(database)
        measured(database, FIRST, [2.0], first=5)
        database.complete(found(database, FIRST, 2), MeasureResult(TrialKind.OK, (9.0,)), 0.5)
        assert [r.median_s for r in database.fastest(FIRST.key, 9)] == [2.0, 3.0, 4.5]
        assert times(known, FIRST) == [1.0, 3.0] and database.trials(FIRST.key) == 3
        assert [r.scale for r in known.records(FIRST.key)] == [None, None]
        assert [r.result.seconds for r in database.records(FIRST.key)] == [(3.0,), (4.5,), (2.0,)]


def test_trials_of_one_time_are_in_the_order_of_their_results(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        known = KnownTrials(database)
        measured(database, FIRST, [1.0, 1.0, 1.0])
        for factor in (2, 3, 1):
            known.add(found(database, FIRST, factor))
        assert [r.number for r in known.fastest(FIRST.key, 3)] == [1, 2, 3]
