"""Cost models in the tuning database: the text each run started with, so it can be replayed."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from ansorpy.measure.records.schema import plain_errors

__all__ = ["ModelStore"]

_MOST_BYTES = 1 << 28
"""Maximum unpacked size of a text in bytes; a model has well under a million."""


class ModelStore:
    """Texts stored under a digest that the caller chooses; the caller validates what it gets."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def put(self, digest: str, text: str) -> None:
        """Store *text*, unless there is already one with this digest."""
        with plain_errors(self._path):
            self._connection.execute(
                "INSERT OR IGNORE INTO models VALUES (?, ?)", (digest, zlib.compress(text.encode()))
            )

    def get(self, digest: str) -> str | None:
        """Return the text with this digest; None if it is missing or damaged."""
        with plain_errors(self._path):
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
