"""Only what this user measured on this machine is believed; anyone else's records are hints."""

from __future__ import annotations

import logging
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansorpy.errors import UsageError
from ansorpy.ir.prove import Claim, Finding, Proof
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.results import Believe
from ansorpy.measure.records.rows import Record
from ansorpy.measure.records.signing import is_signed, sign
from ansorpy.measure.result import MeasureResult, TrialKind
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
    with pytest.raises(UsageError, match="is not a private key"):
        sign("x")


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
