"""Summaries of a database: best times, trials, failures by kind, tasks by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansorpy.cli.main import main
from ansorpy.evaluation.tuning import activities_table, failures_table, summaries, tasks_table
from ansorpy.ir.task import Task
from ansorpy.measure.records.database import Database
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.profiler import Activity
from ansorpy.target import Target
from ansorpy.tasks.task_trials import TaskTrials
from tests.measure.definitions import matmul, task_of, tiled


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    """A database with one task: two good trials, one slow, two that failed."""
    dag = matmul()
    task = task_of(dag)
    results = [
        MeasureResult(TrialKind.OK, (3e-3,)),
        MeasureResult(TrialKind.OK, (2e-3,)),
        MeasureResult(TrialKind.SLOW, (9e-3,)),
        MeasureResult(TrialKind.CRASH, reason="signal 11\nmore"),
    ]
    path = tmp_path / "t.db"
    with Database(path) as database:
        for (i, j), result in zip([(1, 1), (2, 1), (1, 2), (2, 2)], results, strict=True):
            database.complete(database.start(task, tiled(dag, i, j)), result)
    return path


def test_a_task_summed_up(tuned: Path) -> None:
    with Database(tuned) as database:
        [task] = summaries(database)
        assert summaries(database, {"unknown": 3}) == []
        [weighted] = summaries(database, {task.key: 3})
    assert task.trials == 4 and task.failed == 1
    assert task.best_s == 2e-3 and weighted.weight == 3
    assert task.gflops == pytest.approx(task.flops / 2e-3 * 1e-9)
    data = json.loads(json.dumps(task.to_dict()))
    assert data["best_ms"] == pytest.approx(2.0)
    assert data["failures"]["crash"] == {"count": 1, "first_reason": "signal 11\nmore"}


def test_the_parts_of_a_run_longest_first() -> None:
    table = activities_table(
        {Activity.SEARCH: 1.0, Activity.RUN: 6.0, Activity.OTHER: 1e-4, Activity.BUILD: 3.0}
    )
    assert table.rows == (
        ("run", "6.0", "60.0%"),
        ("build", "3.0", "30.0%"),
        ("search", "1.0", "10.0%"),
        ("all", "10.0", "100.0%"),
    )
    assert activities_table({}).rows == ()


def test_tables(tuned: Path) -> None:
    with Database(tuned) as database:
        [task] = summaries(database, {summaries(database)[0].key: 3})
    rows = tasks_table([task]).rows
    assert rows[0][2:6] == ("3", "4", "1", "2000.0") and rows[0][-1] == "100%"
    assert rows[-1][5] == "6000.0"
    failures = {row[0]: row for row in failures_table([task]).rows}
    assert failures["crash"][1] == "1"
    assert failures["crash"][2].endswith("signal 11")


def test_a_run_is_shown_beside_its_plan(tuned: Path) -> None:
    with Database(tuned) as database:
        [task] = summaries(database, {summaries(database)[0].key: 3})
    table = tasks_table([task], run={task.key: TaskTrials(12, 3, "stopped improving")})
    assert table.heading[2:5] == ("calls", "planned", "trials")
    assert [row[3:5] for row in table.rows] == [("12", "3"), ("12", "3")]
    assert (table.heading[-1], table.rows[0][-1]) == ("why not as planned", "stopped improving")
    as_planned = tasks_table([task], run={task.key: TaskTrials(3, 3)})
    assert as_planned.heading[-1] == "share"


def test_tasks_of_no_network_are_told_apart_and_have_no_total(tuned: Path) -> None:
    dag = matmul()
    with Database(tuned) as database:
        alone = tasks_table(summaries(database))
        for task in (task_of(dag, 2), task_of(dag, 2, precision="strict")):
            record = database.start(task, tiled(dag, 1, 1))
            database.complete(record, MeasureResult(TrialKind.OK, (1e-3,)))
        tasks = summaries(database)
    assert alone.heading == ("#", "task", "threads", "trials", "failed", "best us", "GFLOP/s")
    assert [task.weight for task in tasks] == [None] * 3
    table = tasks_table(tasks)
    assert table.heading[2:5] == ("threads", "precision", "trials")
    assert sorted(row[2:7] for row in table.rows) == [
        ("", "", "6", "1", ""),
        ("1", "default", "4", "1", "2000.0"),
        ("2", "default", "1", "0", "1000.0"),
        ("2", "strict", "1", "0", "1000.0"),
    ]


def test_targets_and_cold_constants_tell_tasks_apart(tmp_path: Path) -> None:
    dag = matmul()
    arm = Target.parse("cortex-a76")
    with Database(tmp_path / "t.db") as database:
        for task in (task_of(dag), task_of(dag, reuse_distance_bytes=3 << 20), Task(dag, arm, 1)):
            database.add_task(task)
        table = tasks_table(summaries(database))
    assert table.heading[2:5] == ("threads", "target", "reuse distance MiB")
    assert {row[3:5] for row in table.rows} >= {
        (f"{arm.triple} cortex-a76", "0"),
        (f"{Target.host().triple} {Target.host().cpu}", "3"),
    }


def test_the_verbs_that_read(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--db", str(tuned)]) == 0
    assert "signal 11" in capsys.readouterr().out
    assert main(["report", "--db", str(tuned), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["trials"] == 4
    assert main(["db", "--db", str(tuned)]) == 0
    assert "2000.0" in capsys.readouterr().out
    assert main(["db", "runs", "--db", str(tuned), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
