"""A run is read back with all results of its tasks up to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.evaluation.page.recorded_run import recorded_run
from ansorpy.measure.records.database import Database
from tests.evaluation.page.conftest import TASKS, tune
from tests.search.tasks import scale


def test_a_run_continues_from_those_before_it(database: Database) -> None:
    first, last = recorded_run(database, 1), recorded_run(database)
    assert (first.session.id, last.session.id) == (1, 2)
    trials = [sum(not m.is_again for m in run.measurements) for run in (first, last)]
    assert trials == [15, 30]
    assert sum(last.is_own(m) and not m.is_again for m in last.measurements) == 15
    assert [task.key for task in last.tasks] == [task.key for task in TASKS]


def test_time_passes_over_the_runs(database: Database) -> None:
    run = recorded_run(database)
    times = [m.at_s for m in run.measurements]
    assert times == sorted(times) and times[0] >= 0
    assert run.seconds is not None and times[-1] > run.seconds


def test_the_best_programs_are_those_of_its_end(database: Database) -> None:
    for number in (1, 2):
        run = recorded_run(database, number)
        for task, record in enumerate(run.best(database)):
            assert record is not None and record.median_s is not None
            last = {m.record.id: m.record for m in run.of(task)}
            assert record.median_s == min(r.median_s for r in last.values() if r.median_s and r.ok)
    assert [r and r.id for r in recorded_run(database).best(database)] == [
        r and r.id for r in map(database.best, (task.key for task in TASKS))
    ]


def test_runs_are_chosen_by_number_and_by_task(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    tune(path, 8, (scale(32),))
    tune(path, 8, (scale(64),))
    with Database(path) as database:
        assert recorded_run(database).session.id == 2
        assert recorded_run(database, tasks=[scale(32).key]).session.id == 1
        with pytest.raises(UsageError, match="does not have a run that searched for this network"):
            recorded_run(database, tasks=["another"])
        with pytest.raises(UsageError, match="does not have a run 7 that searched"):
            recorded_run(database, 7)


def test_a_database_without_runs(tmp_path: Path) -> None:
    path = tmp_path / "my records.db"
    with Database(path) as database, pytest.raises(UsageError) as caught:
        recorded_run(database)
    assert caught.value.message == f"{path} does not have a run that searched"
    assert str(caught.value.hint).endswith(f"ansorpy db runs --db '{path}'")
