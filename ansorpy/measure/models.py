"""Cost models in the tuning database: the text a run began with, so that it can be replayed."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from ansorpy.measure.schema import plain_errors

__all__ = ["ModelStore"]

_TABLE = """
CREATE TABLE IF NOT EXISTS models (
    digest TEXT PRIMARY KEY,
    text BLOB NOT NULL
) WITHOUT ROWID
"""
"""Made when it is first needed: files of the same format may lack it."""

_MOST_BYTES = 1 << 28
"""A text may unpack to so much; a model's has well under a million."""


class ModelStore:
    """Texts by a digest of the caller's; he checks what he gets."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def put(self, digest: str, text: str) -> None:
        """Keep *text*; nothing happens when the digest is known."""
        with plain_errors(self._path):
            self._connection.execute(_TABLE)
            self._connection.execute(
                "INSERT OR IGNORE INTO models VALUES (?, ?)", (digest, zlib.compress(text.encode()))
            )

    def get(self, digest: str) -> str | None:
        """The text with this digest; None when it is not kept or is damaged."""
        with plain_errors(self._path):
            if not self._connection.execute("PRAGMA table_info(models)").fetchall():
                return None
            row = self._connection.execute(
                "SELECT CAST(text AS BLOB) AS text FROM models WHERE digest = ?", (digest,)
            ).fetchone()
        return None if row is None else _unpacked(row["text"])


def _unpacked(packed: bytes) -> str | None:
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, _MOST_BYTES).decode()
    except (zlib.error, UnicodeDecodeError):
        return None
    return text if unpacking.eof else None
