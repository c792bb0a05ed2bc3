"""Only what this user measured on this machine is believed; anyone else's records are hints."""

from __future__ import annotations

import hashlib
import logging
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from ansorpy.errors import ForeignFile, UsageError
from ansorpy.ir.prove import Claim, Finding, Proof
from ansorpy.ir.symbols import Dim
from ansorpy.measure.build.handlers import build_lowered
from ansorpy.measure.records import results
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe
from ansorpy.measure.records.rows import Record
from ansorpy.measure.records.signing import is_signed, sign
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.schedule.lowering.program import lower
from ansorpy.schedule.state import State
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.raw import execute

DAG = matmul()
TASK = task_of(DAG)


def ok(seconds: float) -> MeasureResult:
    return MeasureResult(TrialKind.OK, (seconds,), object_digest="0" * 64)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSORPY_STATE", str(tmp_path / "mine"))
    return tmp_path / "tune.db"


def by_another(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """A database in which another user has measured two programs, the second in no time."""
    with monkeypatch.context() as other:
        other.setenv("ANSORPY_STATE", str(path.parent / "other"))
        with Database(path) as db:
            db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
            db.complete(db.start(TASK, tiled(DAG, 2)), ok(1e-12))


def test_the_key_is_private_and_made_once(path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        signatures = set(pool.map(lambda n: sign("x", 1.0, None, "text"), range(8)))
    assert len(signatures) == 1
    [key] = [*(path.parent / "mine").iterdir()]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_bytes()) == 32


def test_statements_that_differ_have_different_signatures(path: Path) -> None:
    statements = [("a", "b"), ("ab",), ("a", "", "b"), ("a", None), ("a", 1.0), ("a", "f0x1.0p+0;")]
    assert len({sign(*parts) for parts in statements}) == len(statements)  # type: ignore[arg-type]
    assert is_signed(sign("a", "é"), "a", "é".encode())
    assert not is_signed(sign("a", 1.0), "a", 1.0000000000000002)
    assert not any(is_signed(wrong, "a") for wrong in ("", "é", None, 3, b"\xff"))


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_key_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    key = path.parent / "mine" / "signing.key"
    key.parent.mkdir()
    key.write_bytes(bytes(32))
    key.chmod(mode)
    with pytest.raises(UsageError, match=f"is not a private key.*\nhint: chmod 600 {key},"):
        sign("x")


def test_a_database_is_not_blamed_for_a_key_that_others_can_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_another(monkeypatch, path)
    key = path.parent / "mine" / "signing.key"
    key.parent.mkdir()
    key.write_bytes(bytes(32))
    key.chmod(0o644)
    with pytest.raises(UsageError, match="is not a private key"), Database(path) as db:
        db.best(TASK.key)
    with Database(path, believe=Believe.ALL) as db:
        assert db.best(TASK.key) is not None


def test_without_a_folder_for_the_key_a_run_signs_for_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (path.parent / "file").write_text("")
    monkeypatch.setenv("ANSORPY_STATE", str(path.parent / "file" / "state"))
    with caplog.at_level(logging.WARNING):
        assert is_signed(sign("x"), "x")
    assert "later runs will measure again" in caplog.text


def test_results_of_others_are_hints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_another(monkeypatch, path)
    with Database(path) as db:
        assert db.best(TASK.key) is None and db.records(TASK.key) == [] and not db.tuned()
        assert db.trials(TASK.key) == 0 and db.failures(TASK.key) == {} and db.unsigned() == 2
        assert db.lookup(TASK, tiled(DAG, 2)) is None
        hints = db.hints(TASK.key, -1)
        assert [hint.median_s for hint in hints] == [1e-12, 1e-3]
        assert [str(db.state(hint)) for hint in hints] == [str(tiled(DAG, n)) for n in (2, 4)]
    with Database(path, believe=Believe.ALL) as db:
        assert [r.median_s for r in db.fastest(TASK.key, 1)] == [1e-12]
        assert db.hints(TASK.key, -1) == [] and db.unsigned() == 2


def test_programs_that_others_timed_come_before_those_that_were_only_checked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(path) as db:
        db.keep_checked(TASK, tiled(DAG, 8), MeasureResult(TrialKind.CHECKED))
    by_another(monkeypatch, path)
    with Database(path) as db:
        assert [hint.median_s for hint in db.hints(TASK.key, -1)] == [1e-12, 1e-3, None]


def test_a_program_measured_again_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_another(monkeypatch, path)
    with Database(path) as db:
        trial = db.start(TASK, tiled(DAG, 2))
        assert not isinstance(trial, Record)
        db.complete(trial, ok(2e-3))
        best = db.best(TASK.key)
        assert best is not None and best.median_s == 2e-3
        assert [hint.median_s for hint in db.hints(TASK.key, -1)] == [1e-3]


@pytest.mark.parametrize(
    "change",
    [
        "results SET median_s = 1e-12", "results SET seconds = '[1e-12]'",
        "results SET object_digest = 'f'", "results SET scale = 0.5", "results SET signature = ''",
        "results SET signature = CAST(x'ff00' AS TEXT)", "results SET max_error = 0.5",
        "trials SET digest = 'f'", "results SET kind = CAST(x'ff' AS TEXT)",
    ],
)  # fmt: skip
def test_a_changed_row_does_not_count(path: Path, change: str) -> None:
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
    execute(path, f"UPDATE {change}")
    with Database(path) as db:
        assert db.best(TASK.key) is None and db.unsigned() == 1


def test_a_signature_holds_for_its_own_trial_only(path: Path) -> None:
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
        db.start(TASK, tiled(DAG, 2))
    execute(path, "UPDATE results SET trial = 2")
    with Database(path) as db:
        assert db.records(TASK.key) == []


@pytest.mark.parametrize("column", ["steps", "dag"])
def test_steps_and_definitions_are_those_that_were_signed(path: Path, column: str) -> None:
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
    if column == "steps":
        execute(path, "UPDATE trials SET steps = '[]'")
    else:
        execute(path, "UPDATE definitions SET dag = replace(dag, '2', '3')")
    with Database(path) as db:
        [record] = db.records(TASK.key)
        assert db.state(record) is None and db.best(TASK.key) is None


def test_a_proof_by_another_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof.of([Finding.refuted(Claim.BOUNDS, "A is read at 24")])
    with Database(path) as db:
        db.proofs.put("definition", "digest", proof)
        assert db.proofs.get("definition", "digest") == proof
    execute(path, "UPDATE proofs SET findings = '[]'")
    with Database(path) as db:
        assert db.proofs.get("definition", "digest") is None
        db.proofs.put("definition", "digest", proof)
    monkeypatch.setenv("ANSORPY_STATE", str(path.parent / "other"))
    with Database(path) as db:
        assert db.proofs.get("definition", "digest") is None


def test_starts_by_another_do_not_count(path: Path) -> None:
    """Whoever writes two starts into a database cannot make a program count as a crash."""
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
    changes = "attempts = 2, steps = '[]', session = 1", "attempts = 7, signature = ''"
    for change in changes:
        execute(path, "DELETE FROM results")
        execute(path, f"UPDATE trials SET {change}")
        with Database(path) as db:
            trial = db.start(TASK, tiled(DAG, 4))
            assert not isinstance(trial, Record) and trial.attempts == 1
            record = db.complete(trial, ok(2e-3))
            assert str(db.state(record)) == str(tiled(DAG, 4)), "the steps are ours again"


def test_what_is_taken_back_leaves_anothers_result_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_another(monkeypatch, path)
    for _ in range(3):
        with Database(path) as db:
            trial = db.start(TASK, tiled(DAG, 2))
            assert not isinstance(trial, Record), "it does not count as a crash"
            db.abandon(trial)
            assert len(db.hints(TASK.key, -1)) == 2


@pytest.mark.parametrize(
    ("found", "planted"),
    [
        ('"shared_bytes": ', '"shared_bytes": 1'), ('"overwrites": []', '"overwrites": [[1, 0]]'),
        ('"sizes": [7]', '"sizes": [9]'), ('"n", 1, 8', '"n", 1, 16'),
    ],
)  # fmt: skip
def test_code_with_a_changed_header_is_not_used(path: Path, found: str, planted: str) -> None:
    code = build_lowered(lower(State.initial(DAG)), TASK.target, "kernel")
    built = replace(code, dims=(Dim("n", 1, 8),), sizes=(7,))
    with Database(path) as db:
        digest = db.objects.put(built)
        assert db.objects.get(digest) == built
    execute(path, "UPDATE objects SET header = replace(header, ?, ?)", (found, planted))
    with Database(path) as db:
        assert db.objects.get(digest) is None


def test_a_definition_is_written_again_if_another_changed_it(path: Path) -> None:
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
    execute(path, "UPDATE definitions SET dag = '{}'")
    with Database(path) as db:
        db.start(TASK, tiled(DAG, 2))
        assert db.best(TASK.key) is not None


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER planted AFTER INSERT ON results BEGIN"
        " UPDATE results SET median_s = 1e-12 WHERE id = new.id; END",
        "CREATE VIEW planted AS SELECT * FROM results", "CREATE TABLE planted (x)",
        "CREATE INDEX planted ON results (median_s)", "ALTER TABLE results ADD COLUMN planted",
    ],
)  # fmt: skip
def test_a_database_has_our_tables_and_nothing_else(path: Path, planted: str) -> None:
    with Database(path):
        pass
    execute(path, planted)
    with pytest.raises(ForeignFile, match="has other tables"):
        Database(path)


def test_an_earlier_result_cannot_become_the_last(path: Path) -> None:
    state = tiled(DAG, 4)
    with Database(path) as db:
        trial = db.start(TASK, state)
        db.complete(trial, ok(1e-3))
        db.complete(trial, MeasureResult(TrialKind.REFUTED, reason="it reads too far"))
    execute(path, "UPDATE results SET id = 9 WHERE id = 1")
    with Database(path) as db:
        assert db.best(TASK.key) is None and db.unsigned() == 1


def test_a_result_is_checked_each_time_it_is_read(path: Path) -> None:
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
        assert db.best(TASK.key) is not None
        execute(path, "UPDATE results SET median_s = 1e-12")
        assert db.best(TASK.key) is None
        with pytest.raises(ForeignFile, match="no signature of yours on the result 1"):
            db.record(1)


@pytest.mark.parametrize(
    "change",
    [
        "results SET spread = -1.0", "results SET median_s = CAST(x'ff' AS TEXT)",
        "results SET max_error = CAST(x'ff' AS TEXT)", "results SET scale = 'large'",
        "results SET seconds = '[]'", """results SET seconds = '["NaN"]'""",
        "trials SET started_at = 'now'",
    ],
)  # fmt: skip
def test_a_hint_that_cannot_be_read_is_skipped(
    path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    by_another(monkeypatch, path)
    execute(path, f"UPDATE {change} WHERE id = 1")
    with Database(path) as db:
        assert [hint.id for hint in db.hints(TASK.key, -1)] == [2]
        assert db.best(TASK.key) is None and db.unsigned() == 2


@pytest.mark.parametrize("change", ["kind = 'bogus'", "kind = x'00ff'"])
def test_a_report_of_hostile_rows_is_one_message(path: Path, change: str) -> None:
    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
    execute(path, f"UPDATE results SET {change}")
    refused = pytest.raises(ForeignFile, match="column kind")
    with Database(path, believe=Believe.ALL) as db, refused:
        db.failures(TASK.key)


def test_a_definition_nested_too_deeply_is_refused(path: Path) -> None:
    text = "[" * 200_000
    name = hashlib.sha256(text.encode()).hexdigest()
    with Database(path):
        pass
    execute(path, "INSERT INTO definitions VALUES (?, ?)", (name, text))
    with Database(path) as db, pytest.raises(ForeignFile, match="has no readable definition"):
        db.definitions.get(name)


def test_steps_of_another_that_cannot_be_read_do_not_hide_ours(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_another(monkeypatch, path)
    execute(path, "UPDATE trials SET steps = '[' WHERE id = 2")
    with Database(path) as db:
        hint = db.hints(TASK.key, 1)[0]
        assert db.state(hint) is None
        db.complete(db.start(TASK, tiled(DAG, 2)), ok(2e-3))
        best = db.best(TASK.key)
        assert best is not None and best.id == hint.id


def test_ctrl_c_while_signatures_are_checked_is_no_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with Database(path) as db:
        db.complete(db.start(TASK, tiled(DAG, 4)), ok(1e-3))
    with Database(path) as db:
        with monkeypatch.context() as pressed, pytest.raises(KeyboardInterrupt):
            pressed.setattr(results, "is_signed_by", interrupted)
            db.records(TASK.key)
        assert len(db.records(TASK.key)) == 1
