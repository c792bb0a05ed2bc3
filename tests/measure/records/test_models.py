"""Cost models kept in a tuning database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ansorpy.measure.records.database import Database


def test_a_text_comes_back_and_the_first_one_stays(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db") as database:
        assert database.models.get("a") is None
        database.models.put("a", "tree ∑ 1\n" * 1000)
        database.models.put("a", "other")
        database.models.put("b", "")
    with Database(tmp_path / "t.db") as database:
        assert database.models.get("a") == "tree ∑ 1\n" * 1000
        assert database.models.get("b") == "" and database.models.get("c") is None


@pytest.mark.parametrize("damage", ["X'00'", "'text'", "X''", "substr(text, 1, length(text) - 1)"])
def test_what_is_damaged_counts_as_missing(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "t.db"
    with Database(path) as database:
        database.models.put("a", "tree")
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE models SET text = {damage}")
    connection.commit()
    connection.close()
    with Database(path) as database:
        assert database.models.get("a") is None
