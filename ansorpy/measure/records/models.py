"""Cost models in the tuning database: the text each run started with, so it can be replayed."""

from __future__ import annotations

import zlib

from ansorpy.measure.records.schema import Store

__all__ = ["ModelStore"]

_MOST_BYTES = 1 << 28
"""Maximum unpacked size of a text in bytes; a model has well under a million."""


class ModelStore(Store):
    """Texts stored under a digest that the caller chooses; the caller validates what it gets."""

    def put(self, digest: str, text: str) -> None:
        """Store *text*, unless there is already one with this digest."""
        packed = zlib.compress(text.encode())
        self._do("INSERT OR IGNORE INTO models VALUES (?, ?)", digest, packed)

    def get(self, digest: str) -> str | None:
        """Return the text with this digest; None if it is missing or damaged."""
        rows = self._rows("SELECT CAST(text AS BLOB) AS text FROM models WHERE digest = ?", digest)
        return _unpacked(rows[0]["text"]) if rows else None


def _unpacked(packed: bytes) -> str | None:
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(packed, _MOST_BYTES).decode()
    except (zlib.error, UnicodeDecodeError):
        return None
    return text if unpacking.eof else None
