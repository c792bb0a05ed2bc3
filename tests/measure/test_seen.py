"""A run sees the trials that it began with and its own, whatever others write meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.ir.task import Task
from ansorpy.measure.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.seen import Seen
from tests.measure.definitions import matmul, task_of, tiled

FIRST, SECOND = (task_of(matmul(n, 8, 8)) for n in (16, 32))


def measured(database: Database, task: Task, times: Sequence[float], first: int = 1) -> None:
    """Trials of *task* with these times, by the factors from *first* on; 0: it crashed."""
    for factor, seconds in enumerate(times, first):
        ok = MeasureResult(TrialKind.OK, (seconds,))
        result = ok if seconds else MeasureResult(TrialKind.CRASH)
        database.complete(database.start(task, tiled(task.dag, factor)), result)


def times(seen: Seen, task: Task, n: int = 9) -> list[float | None]:
    return [record.median_s for record in seen.fastest(task.key, n)]


def test_others_trials_are_not_seen_until_they_are_told(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database, Database(tmp_path / "a.db") as other:
        measured(database, FIRST, [3.0, 0.0, 1.0, 2.0])
        seen = Seen(database)
        measured(other, FIRST, [0.5], first=7)
        measured(other, SECOND, [1.0])
        assert times(seen, FIRST) == [1.0, 2.0, 3.0] and times(seen, FIRST, 2) == [1.0, 2.0]
        assert times(seen, SECOND) == [] and seen.similar(FIRST) == []
        record = database.lookup(SECOND, tiled(SECOND.dag, 1))
        assert record is not None
        seen.add(SECOND.key, 1.0, record.id)
        seen.add(SECOND.key, 1.0, record.id)
        assert times(seen, SECOND) == [1.0]
        assert [seen.count(task.key) for task in (FIRST, SECOND)] == [3, 1]
        assert [row.key for row in seen.similar(FIRST)] == [SECOND.key]


def test_the_order_is_that_of_the_times_there_were(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        measured(database, FIRST, [3.0, 1.0])
        with database.snapshot() as past:
            measured(database, FIRST, [2.0], first=5)
            slow = database.lookup(FIRST, tiled(FIRST.dag, 2))
            assert slow is not None
            database.retimed(slow, MeasureResult(TrialKind.OK, (9.0,)))
            assert past.trials(FIRST.key) == 2 and past.last_event == database.last_event - 1
            seen = Seen(database, past)
        assert [r.id for r in seen.fastest(FIRST.key, 3)] == [2, 1]


def test_trials_of_one_time_stay_in_the_order_they_came(tmp_path: Path) -> None:
    with Database(tmp_path / "a.db") as database:
        seen = Seen(database)
        measured(database, FIRST, [1.0, 1.0, 1.0])
        for number in (2, 3, 1):
            seen.add(FIRST.key, 1.0, number)
        assert [r.id for r in seen.fastest(FIRST.key, 3)] == [2, 3, 1]
