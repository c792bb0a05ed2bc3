"""Object code by content, in the tuning database: the code used is exactly the code timed."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

from ansorpy.errors import ForeignFile
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.records.schema import Store

__all__ = ["ObjectStore"]


class ObjectStore(Store):
    """Built candidates by content digest; damaged ones count as missing.

    Args:
        max_bytes: Maximum size of all code; the least recently used is evicted first.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, max_bytes: int = 256 << 20
    ) -> None:
        super().__init__(connection, path)
        self.max_bytes = max_bytes

    def put(self, built: Built) -> str:
        """Store *built*; returns its digest."""
        header, blobs = built.parts()
        text = json.dumps({"header": header, "sizes": [len(blob) for blob in blobs]})
        self._do(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)",
            built.digest, text, b"".join(blobs), time.time(),
        )  # fmt: skip
        self._evict()
        return built.digest

    def get(self, digest: str) -> Built | None:
        """Return the candidate with this digest; None if it is missing or damaged."""
        rows = self._rows(
            "SELECT header, CAST(code AS BLOB) AS code FROM objects WHERE digest = ?", digest
        )
        if not rows:
            return None
        built = _decoded(rows[0]["header"], rows[0]["code"])
        if built is None or built.digest != digest:
            self._do("DELETE FROM objects WHERE digest = ?", digest)
            return None
        self._do("UPDATE objects SET used_at = ? WHERE digest = ?", time.time(), digest)
        return built

    @property
    def bytes(self) -> int:
        """Size of all stored code."""
        [row] = self._rows("SELECT total(length(code)) FROM objects")
        return int(row[0])

    def _evict(self) -> None:
        while self.bytes > self.max_bytes:
            self._do(
                "DELETE FROM objects WHERE digest = "
                "(SELECT digest FROM objects ORDER BY used_at, digest LIMIT 1)"
            )


def _decoded(header: str, code: bytes) -> Built | None:
    try:
        parts = json.loads(header)
        sizes = parts["sizes"]
        starts = [sum(sizes[:n]) for n in range(len(sizes))]
        blobs = [code[start : start + size] for start, size in zip(starts, sizes, strict=True)]
        return built_from_parts(parts["header"], blobs)
    except (ForeignFile, RecursionError, ValueError, TypeError, KeyError):
        return None
