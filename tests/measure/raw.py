"""A tuning database's file as it is, for tests of what a version before or a defect left in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["execute"]


def execute(path: Path, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
    """Run one statement on the file, which a driver may have open; returns its rows."""
    with closing(sqlite3.connect(path)) as raw, raw:
        return raw.execute(sql, values).fetchall()
