"""Traces of tuning runs, from what the database recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ansorpy as ap
from ansorpy.cli.main import main
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.evaluation.tuning_trace import trace_of_tuning
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.journal import TIMES
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure.definitions import matmul, task_of, tiled
from tests.traces import assert_is_trace


def test_a_run_is_traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.db"
    A = ap.placeholder((24, 36), name="A")
    B = ap.compute((24, 36), lambda i, j: A[i, j] * 2.0, name="B")
    ap.tune([A, B], trials=6, threads=1, db=path)
    with Database(path) as database:
        slices = assert_is_trace(trace_of_tuning(database, 1).to_dict())
    assert {"search", "trials", "builds 1"} <= set(slices)
    activities = {event["name"] for event in slices["search"]}
    assert {"search", "build", "run"} <= activities
    trials = [event["args"] for event in slices["trials"]]
    assert len([trial for trial in trials if not trial["again"]]) == 6
    assert all(trial["median_us"] >= trial["best_us"] for trial in trials if trial["median_us"])
    assert {event["name"] for event in slices["trials"]} == {"B"}
    assert main(["report", "--db", str(path), "--trace", str(tmp_path / "t.json")]) == 0
    assert "t.json: tuning run 1 of t.db" in capsys.readouterr().out
    assert_is_trace(json.loads((tmp_path / "t.json").read_text()))
    for option in ("--trace", "--html"):
        assert main(["report", "--db", str(path), option, str(path)]) == 2
        assert f"{path} would replace {path}" in capsys.readouterr().err
    [again] = ap.replay(path)
    assert again.is_same


def test_builds_at_the_same_time_are_on_other_tracks() -> None:
    with Database() as database:
        builds = [[10.0, 12.0], [11.0, 13.0], [12.5, 14.0], [13.5, 15.0]]
        activities = [["search", 9.0, 10.0]]
        database.sessions.log(TIMES, {"activities": activities, "builds": builds})
        slices = assert_is_trace(trace_of_tuning(database).to_dict())
    assert {track: len(of) for track, of in slices.items()} == {
        "search": 1, "builds 1": 2, "builds 2": 2,
    }  # fmt: skip


def test_a_run_that_begins_with_timing_again_begins_when_it_began(tmp_path: Path) -> None:
    dag = matmul()
    task, result = task_of(dag), MeasureResult(TrialKind.OK, (1e-3,))
    with Database(tmp_path / "t.db") as database:
        database.complete(database.start(task, tiled(dag, 4, 2)), result)
    with Database(tmp_path / "t.db") as database:
        [record] = database.records(task.key)
        database.complete(record, result, scale=1.0)
        [again] = trace_of_tuning(database, 2).slices
        began_at = database.sessions.all()[1].started_at
    assert again.start_us == began_at * 1e6 <= again.end_us


def test_what_cannot_be_traced_is_refused() -> None:
    with Database() as database:
        with pytest.raises(UsageError, match="has no run that measured"):
            trace_of_tuning(database)
        with pytest.raises(UsageError, match="there is no run 3 in :memory:"):
            trace_of_tuning(database, 3)
        database.sessions.log(TIMES, {"activities": [[1, 2]], "builds": []})
        with pytest.raises(ForeignFile, match="does not say when a run did what"):
            trace_of_tuning(database)
