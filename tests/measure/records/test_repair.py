"""Damaged databases are found when they are opened, and what can be read of them is saved."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ansorpy.cli.main import main
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.repair import repair
from ansorpy.measure.result import MeasureResult, TrialKind
from tests.measure.definitions import matmul, task_of, tiled
from tests.measure.raw import execute

DAG = matmul(64, 64, 16)
TASK = task_of(DAG)
TILES = [(n, m) for n in (1, 2, 4, 8, 16, 32, 64) for m in (1, 2, 4, 8, 16, 32, 64)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of 49 trials."""
    path = tmp_path / "tune.db"
    with Database(path) as db:
        for number, tiles in enumerate(TILES, 1):
            result = MeasureResult(TrialKind.OK, (number * 1e-3,))
            db.complete(db.start(TASK, tiled(DAG, *tiles)), result)
    return path


def damage(path: Path, rng: np.random.Generator, table: str) -> None:
    """Overwrite a leaf of *table* in the middle."""
    with closing(sqlite3.connect(path)) as raw:
        bytes_a_page = raw.execute("PRAGMA page_size").fetchone()[0]
        root = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        page = bytes_a_page * (root.fetchone()[0] - 1)
    data = bytearray(path.read_bytes())
    assert data[page] == 5, "the table is a tree of several pages"
    cells = int.from_bytes(data[page + 3 : page + 5], "big")
    pointer = page + 12 + 2 * (cells // 2)
    cell = page + int.from_bytes(data[pointer : pointer + 2], "big")
    leaf = bytes_a_page * (int.from_bytes(data[cell : cell + 4], "big") - 1)
    data[leaf : leaf + bytes_a_page] = rng.bytes(bytes_a_page)
    path.write_bytes(data)


def test_damage_is_found_and_what_is_whole_is_saved(
    path: Path, tmp_path: Path, rng: np.random.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(path, rng, "trials")
    for verb in ("report", "db"):
        assert main([verb, "--db", str(path)]) == 6
        assert f"ansorpy db repair --db {path}" in capsys.readouterr().err
    saved = tmp_path / "saved.db"
    assert main(["db", "repair", "--db", str(path), "-o", str(saved), "--json"]) == 0
    tables = {t["table"]: t for t in json.loads(capsys.readouterr().out)["tables"]}
    kept = tables["trials"]["rows"]
    assert 20 < kept < len(TILES) and not tables["trials"]["is_all"]
    assert tables["results"]["rows"] == kept and tables["results"]["unfit"] == len(TILES) - kept
    with Database(saved) as db:
        assert db.trials(TASK.key) == kept and db.unsigned() == 0
        best = db.best(TASK.key)
        assert best is not None and best.median_s == 1e-3
        last = db.fastest(TASK.key, -1)[-1].median_s
        assert last is not None and last > 0.04, "what lies behind the damage is saved, too"


def test_damage_to_the_schema_is_named_though_it_is_no_text(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b"CREATE TABLE trials") + 3] = 0xA9  # SQLite quotes it in its message
    path.write_bytes(data)
    with pytest.raises(ForeignFile, match="is not a tuning database, or is damaged"):
        Database(path)
    with pytest.raises(ForeignFile, match="nothing of .*tune.db can be read: ") as caught:
        repair(path, tmp_path / "saved.db")
    assert caught.value.hint is None


def test_commands_in_hints_quote_paths(path: Path, tmp_path: Path) -> None:
    odd = path.rename(tmp_path / "my records.db")
    with closing(sqlite3.connect(odd)) as raw:
        raw.execute("CREATE VIEW v AS SELECT 1")
    with pytest.raises(ForeignFile, match=f"ansorpy db repair --db '{odd}' -o"):
        Database(odd)


def test_a_whole_database_is_saved_whole(path: Path, tmp_path: Path) -> None:
    saved = repair(path, tmp_path / "saved.db")
    assert all(table.is_all and not table.unfit for table in saved)
    with Database(path) as one, Database(tmp_path / "saved.db") as other:
        assert one.records(TASK.key) == other.records(TASK.key)


def test_nothing_is_replaced_and_nothing_is_left_of_what_failed(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists"):
        repair(path, path)
    (tmp_path / "text").write_text("not a database")
    for wrong in (tmp_path / "text", tmp_path / "absent"):
        with pytest.raises(ForeignFile):
            repair(wrong, tmp_path / "saved.db")
    assert not (tmp_path / "saved.db").exists()


def test_a_database_that_cannot_be_written_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = path.read_bytes()
    # Whoever runs this may be able to write everywhere.
    monkeypatch.setattr(os, "access", lambda where, mode: mode != os.W_OK)
    assert main(["report", "--db", str(path)]) == 0 and main(["db", "runs", "--db", str(path)]) == 0
    assert not caplog.messages
    with Database(path) as db:
        assert db.trials(TASK.key) == len(TILES)
        db.complete(db.start(TASK, tiled(DAG, 3)), MeasureResult(TrialKind.OK, (1e-6,)))
        assert db.trials(TASK.key) == len(TILES) + 1
    assert "what this run records is lost" in caplog.text
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("pragma", "message"),
    [("user_version = 9", "of format 9"), ("application_id = 7", "another program's")],
)
def test_other_files_are_not_repaired(
    path: Path, tmp_path: Path, pragma: str, message: str
) -> None:
    execute(path, f"PRAGMA {pragma}")
    with pytest.raises(ForeignFile, match=message):
        repair(path, tmp_path / "saved.db")
    assert not (tmp_path / "saved.db").exists()
