"""Replaying from Python: what must be there."""

from __future__ import annotations

from pathlib import Path

import pytest

import ansorpy as ap
from ansorpy.errors import ForeignFile, UsageError
from ansorpy.measure.records.database import Database


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ForeignFile, match=r"there is no database .*absent.db"):
        ap.replay(tmp_path / "absent.db")
    assert not list(tmp_path.iterdir())


def test_a_database_without_a_search_has_nothing_to_replay(tmp_path: Path) -> None:
    with Database(tmp_path / "t.db"):
        pass
    with pytest.raises(UsageError, match=r"recorded a search\nhint: name another file, or tune"):
        ap.replay(tmp_path / "t.db")
