"""Records survive kills, strangers and two writers; nothing unchecked comes out of a file."""

from __future__ import annotations

import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

import ansorpy
from ansorpy.errors import ForeignFile
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.task import Task
from ansorpy.ir.tensor import compute, placeholder
from ansorpy.ir.text.serialize import dag_to_json
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe
from ansorpy.measure.records.rows import Record
from ansorpy.measure.records.schema import FORMAT, connect, transaction
from ansorpy.measure.records.sessions import warn_of_writers
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.workers.processes import process_identity
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.raw import execute

ROOT = str(Path(ansorpy.__file__).parents[1])
OK = MeasureResult(TrialKind.OK, (2e-3, 1e-3, 3e-3), build_s=0.1, run_s=0.2, max_error=1e-6)


def ok(seconds: float) -> MeasureResult:
    return MeasureResult(TrialKind.OK, (seconds,))


def result_of(db: Database, task: Task, state: State) -> MeasureResult | None:
    record = db.lookup(task, state)
    return None if record is None else record.result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tune.db"


def test_a_trial_comes_back_as_it_was_measured(path):
    dag = matmul()
    task, state = task_of(dag), tiled(dag, 4, 2)
    with Database(path) as db:
        assert db.best(task.key) is None and db.trials(task.key) == 0
        started = db.start(task, state)
        assert not isinstance(started, Record) and db.records(task.key) == []
        db.complete(started, OK)
    with Database(path) as db:
        (record,) = db.records(task.key)
        assert record.result == OK
        assert record.median_s == 2e-3 and record.ok
        assert str(record.state(dag)) == str(state)
        assert dag_to_json(db.definitions.get(record.definition)) == dag_to_json(dag)
        assert db.best(task.key) == record and db.trials(task.key) == 1
        row = db.task(task.key)
        assert row is not None and row.threads == 1 and row.flops == task.flops
        assert [t.key for t in db.tasks()] == [task.key]
        assert db.failures(task.key) == {}


def test_the_best_is_the_fastest_right_one_and_failures_are_counted_by_kind(path):
    dag = matmul()
    task = task_of(dag)
    results = [
        ok(5e-3), MeasureResult(TrialKind.WRONG_RESULT, (), "C[0] is 1", max_error=math.inf),
        MeasureResult(TrialKind.SLOW, (1e-9,), "stopped"), ok(4e-3),
        MeasureResult(TrialKind.WRONG_RESULT, (), "C[9] is 2"), ok(6e-3),
    ]  # fmt: skip
    with Database(path) as db:
        for factor, result in enumerate(results, 1):
            db.complete(db.start(task, tiled(dag, factor)), result)
        best = db.best(task.key)
        assert best is not None and best.median_s == 4e-3
        assert db.failures(task.key) == {
            TrialKind.WRONG_RESULT: (2, "C[0] is 1"), TrialKind.SLOW: (1, "stopped"),
        }  # fmt: skip
        assert [r.result for r in db.records(task.key)] == results
        assert db.trials(task.key) == 6


@pytest.mark.parametrize(
    "steps",
    ['[{"kind": "fold", "stage": "C"}]', '[{"kind": "split", "stage": "gone"}]', "", "{}", "[1"],
)
def test_a_schedule_that_cannot_be_read_back_makes_place_for_the_next(path, steps, caplog):
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        for factor, seconds in enumerate((3e-3, 1e-3, 4e-3, 2e-3), 1):
            db.complete(db.start(task, tiled(dag, factor)), ok(seconds))
        execute(
            db.path,
            "UPDATE trials SET steps = ? WHERE id IN"
            " (SELECT trial FROM results WHERE median_s < 3e-3)",
            (steps,),
        )
    with Database(path) as db:
        for _ in range(2):
            best = db.best(task.key)
            assert best is not None and best.median_s == 3e-3
        assert best is not None and str(db.state(best)) == str(tiled(dag, 1))
        assert [db.state(record) is None for record in db.records(task.key)] == [0, 1, 0, 1]
    [warning] = caplog.messages
    assert "skipping trial 2 and all others like it" in warning and str(path) in warning


def test_schedules_targets_threads_and_shapes_do_not_mix(path):
    dag, other = matmul(), matmul(k=19)
    with Database(path) as db:
        db.complete(db.start(task_of(dag), tiled(dag, 4)), ok(1e-3))
        for task, state in (
            (task_of(dag, threads=2), tiled(dag, 4)),
            (task_of(dag, reuse_distance_bytes=1 << 27), tiled(dag, 4)),
            (task_of(other), tiled(other, 4)),
            (task_of(dag), tiled(dag, 2)),
        ):
            assert not isinstance(db.start(task, state), Record)
        assert isinstance(db.start(task_of(matmul()), tiled(matmul(), 4)), Record)


def test_a_measured_trial_is_not_started_again_and_its_last_result_counts(path):
    dag = matmul()
    task, state = task_of(dag), tiled(dag, 4)
    with Database(path) as db:
        trial = db.start(task, state)
        first = db.complete(trial, ok(1e-3))
        began = db.position
        last = db.complete(trial, ok(2e-3))
        assert db.start(task, state) == last == db.lookup(task, state) == db.best(task.key)
        assert (first.number, last.number) == (1, 2) and db.trials(task.key) == 1
        assert db.lookup(task, state, began) == first == db.record(1)
        assert db.records(task.key, began) == [first] == db.fastest(task.key, 1, began)
        assert db.failures(task.key) == {}


def test_a_database_may_live_in_memory():
    dag = matmul()
    task, state = task_of(dag), tiled(dag, 4)
    with Database() as one, Database() as other:
        one.complete(one.start(task, state), ok(1e-3))
        assert one.trials(task.key) == 1 and other.trials(task.key) == 0
        with pytest.raises(ForeignFile, match=":memory: lacks the result 2"):
            one.record(2)


DRIVER = """
import sys, time
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure.definitions import matmul, task_of, tiled
db, dag = Database(sys.argv[1]), matmul()
task = task_of(dag)
first = db.start(task, tiled(dag, 2))
if not isinstance(first, Record):
    db.complete(first, MeasureResult(TrialKind.OK, (1e-3,)))
record = db.start(task, tiled(dag, 4))
print("started", record.attempts, flush=True)
time.sleep(60)
"""


def driver(path: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_started_twice_by_killed_drivers_is_a_crash(path):
    for said in ("started 1", "started 2"):
        process, line = driver(path)
        kill(process)
        assert line == said
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        record = db.start(task, tiled(dag, 4))
        assert isinstance(record, Record) and record.attempts == 2
        assert record.kind is TrialKind.CRASH
        assert db.trials(task.key) == 2
        assert db.failures(task.key)[TrialKind.CRASH][1].startswith("the driver died twice")
        assert [s.ended_at for s in db.sessions.all()] == [None] * 2
    check = sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone()
    assert check == ("ok",)


def test_two_living_drivers_share_a_file(path):
    dag = matmul()
    task, state = task_of(dag), tiled(dag, 4)
    process, line = driver(path)
    try:
        assert line == "started 1"
        with Database(path) as db:
            for _ in range(3):
                record = db.start(task, state)
                assert not isinstance(record, Record) and record.attempts == 1
            assert result_of(db, task, tiled(dag, 2)) == ok(1e-3)
            db.complete(record, ok(7e-3))
    finally:
        kill(process)
    with Database(path) as db:
        assert result_of(db, task, state) == ok(7e-3)


def test_an_abandoned_trial_did_not_happen(path):
    dag = matmul()
    task, state = task_of(dag), tiled(dag, 4)
    with Database(path) as db:
        for _ in range(4):
            record = db.start(task, state)
            assert record.attempts == 1
            db.abandon(record)
        assert db.lookup(task, state) is None


class Interrupted(sqlite3.Connection):
    """Ctrl-C arrives right after the first statement that starts with ``after``."""

    after = ""

    def execute(self, sql, *args):
        done = super().execute(sql, *args)
        if self.after and sql.startswith(self.after):
            self.after = ""
            raise KeyboardInterrupt
        return done


@pytest.mark.parametrize("after", ["BEGIN", "INSERT", "COMMIT"])
def test_ctrl_c_at_any_moment_of_a_transaction_leaves_none_open(path, after):
    with sqlite3.connect(path) as first:
        first.execute("CREATE TABLE notes (text)")
    connection = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
    connection.after = after
    for _ in range(2):
        with suppress(KeyboardInterrupt), transaction(connection, path):
            connection.execute("INSERT INTO notes VALUES ('kept')")
    assert not connection.in_transaction
    kept = 2 if after == "COMMIT" else 1
    assert first.execute("SELECT count(*) FROM notes").fetchone() == (kept,)


@pytest.mark.parametrize("first_gives_up", [True, False])
def test_a_trial_that_two_drivers_run_outlives_the_one_that_gives_up(path, first_gives_up):
    dag = matmul()
    task, state, other = task_of(dag), tiled(dag, 4), tiled(dag, 8)
    with Database(path) as one, Database(path) as two:
        drivers = [(db, db.start(task, state)) for db in (one, two)]
        (quitter, taken_back), (goes_on, record) = drivers if first_gives_up else drivers[::-1]
        quitter.abandon(taken_back)
        between = quitter.start(task, other)
        goes_on.complete(record, ok(5e-3))
        found, under_way = goes_on.lookup(task, state), goes_on.start(task, other)
        assert found is not None and found.result == ok(5e-3)
        assert under_way == between and not isinstance(between, Record)


def test_who_opens_a_new_database_waits_for_another_that_writes_to_it(path, monkeypatch):
    connect(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN IMMEDIATE")
    waits = []

    def end_the_write(seconds):
        waits.append(seconds)
        other.execute("COMMIT")

    monkeypatch.setattr(time, "sleep", end_the_write)
    with Database(path) as db:
        assert db.sessions.all() == [] and len(waits) == 1
    other.close()
    with sqlite3.connect(path) as again:
        assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_several_may_create_a_database_at_once(tmp_path):
    def create(number, at_once):
        at_once.wait()
        connect(tmp_path / f"{number}.db").close()

    for number in range(20):
        at_once = Barrier(3)
        with ThreadPoolExecutor(3) as creators:
            for created in [creators.submit(create, number, at_once) for _ in range(3)]:
                created.result()


@pytest.mark.parametrize(
    "content", [b"garbage" * 999, b"SQLite format 3\0" + b"\xff" * 4096, b"PK\x03\x04", b"\0"]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(ForeignFile, match=r"is not a tuning database(, or is|\n.*\(db= in Python)"):
        Database(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE notes (text)")
    before = path.read_bytes()
    with pytest.raises(ForeignFile, match="another program.s SQLite file"):
        Database(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, FORMAT - 1, FORMAT + 1, 99])
def test_another_format_is_refused(path, version):
    Database(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {version}")
    raw.close()
    with pytest.raises(
        ForeignFile, match=f"of format {version}; this ansorpy reads format {FORMAT}"
    ):
        Database(path)


def test_a_folder_that_does_not_exist_is_one_plain_error(tmp_path):
    with pytest.raises(ForeignFile, match="cannot be used"):
        Database(tmp_path / "nowhere" / "tune.db")
    with pytest.raises(ForeignFile, match="cannot read .*directory"):
        Database(tmp_path)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("results", "kind", "fast"), ("results", "seconds", '["quick"]'),
        ("results", "seconds", "not json"), ("results", "median_s", -1.0),
        ("results", "median_s", float("inf")), ("results", "scale", 0.0),
        ("results", "spread", "x"), ("trials", "attempts", 0), ("trials", "started_at", "now"),
        ("trials", "started_at", 1e300), ("results", "finished_at", -1.0),
    ],
)  # fmt: skip
def test_a_hostile_row_is_refused_by_column(path, table, column, value):
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        db.complete(db.start(task, tiled(dag, 4)), ok(1e-3))
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE {table} SET {column} = ?", (value,))
    raw.close()
    # As a result of this user it no longer counts; a report reads it.
    refused = pytest.raises(ForeignFile, match=f"column {column}")
    with Database(path, believe=Believe.ALL) as db, refused:
        db.records(task.key)


@pytest.mark.parametrize("steps", ["{", "[]x", '[{"kind": "os.system"}]', '[{"kind": "split"}]'])
def test_hostile_steps_are_refused(path, steps):
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        db.complete(db.start(task, tiled(dag, 4)), ok(1e-3))
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE trials SET steps = ?", (steps,))
    raw.close()
    with Database(path) as db, pytest.raises(ForeignFile):
        db.records(task.key)[0].state(dag)


def test_steps_of_another_definition_do_not_apply(path):
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        db.complete(db.start(task, tiled(dag, 4)), ok(1e-3))
        (record,) = db.records(task.key)
        a = placeholder((4,), name="X")
        other = compute((4,), lambda i: a[i] + 1.0, name="Y")
        with pytest.raises(ForeignFile, match="does not apply"):
            record.state(ComputeDAG.of([a, other]))


def test_a_truncated_file_is_one_plain_error(path):
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        for factor in range(1, 60):
            db.complete(db.start(task, tiled(dag, factor)), ok(1e-3))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ForeignFile, match="tune.db"), Database(path) as db:
        db.records(task.key)


def test_times_of_a_comparison_are_scaled_and_replace_earlier_ones(path):
    dag = matmul()
    task = task_of(dag)
    with Database(path) as db:
        for factor, seconds in ((4, 1e-3), (8, 2e-3)):
            db.complete(db.start(task, tiled(dag, factor)), ok(seconds))
        lucky = db.best(task.key)
        assert lucky is not None
        again = db.complete(lucky, ok(1.5e-3), 2.0)
        assert again.measured == ok(1.5e-3) and again.result == ok(3e-3)
        best = db.best(task.key)
        assert best is not None and best.seconds == (2e-3,)
        assert [r.median_s for r in db.records(task.key)] == [3e-3, 2e-3]


def test_events_come_back_in_order_by_session(path):
    with Database(path, seed=7, versions={"llvm": "20"}) as db:
        first = db.sessions.current
        for n in range(5):
            db.sessions.log("ask" if n % 2 else "tell", {"n": n, "clock": time.time()})
    with Database(path) as db:
        db.sessions.log("ask", {"n": 99})
        assert [e.body["n"] for e in db.sessions.events(first)] == [0, 1, 2, 3, 4]
        assert [e.kind for e in db.sessions.events(first)] == ["tell", "ask", "tell", "ask", "tell"]
        started = db.sessions.all()[0]
        assert started.seed == 7 and started.versions == {"llvm": "20"}
        assert started.ended_at is not None


def test_a_session_that_was_rolled_back_begins_with_the_next_row(path: Path) -> None:
    dag = matmul()
    with Database(path) as db:
        with pytest.raises(UnicodeEncodeError):
            unfit = MeasureResult(TrialKind.CHECKED, reason="\ud800")
            db.keep_checked(task_of(dag), tiled(dag, 4), unfit)
        db.keep_checked(task_of(dag), tiled(dag, 4), MeasureResult(TrialKind.CHECKED))
        assert len(db.checked(task_of(dag).key)) == len(db.sessions.all()) == 1


def test_other_writers_are_warned_of_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_writers(path, [])
    assert not caplog.records
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        for _ in range(2):
            warn_of_writers(path, [child.pid])
        [record] = caplog.records
        said = (
            rf"tune\.db is also written by process {child.pid} \(.*python.* input\(\)\); all keep"
        )
        assert re.search(said, record.getMessage())
        warn_of_writers(path.with_name("other.db"), [child.pid])
        warn_of_writers(path, [child.pid, os.getpid()])
        assert len(caplog.records) == 3
        assert f"written by process {os.getpid()} (" in caplog.records[-1].getMessage()
        child.communicate(b"")


def test_other_runs_that_write_to_the_file_are_named(path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Database(path) as db, Database(path) as same_process:
        assert db.sessions.current != same_process.sessions.current
        assert db.sessions.others() == []
        sql = "UPDATE sessions SET process = ? WHERE id = ?"
        execute(path, sql, (process_identity(child.pid), same_process.sessions.current))
        assert db.sessions.others() == [child.pid]
        child.communicate(b"")
        assert db.sessions.others() == [], "it has ended"
