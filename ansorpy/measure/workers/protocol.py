"""Messages between the driver and its workers: a JSON header, then raw bytes, over a pipe.

A frame is ``b"answ"``, the header's length (4 bytes, little endian), the header, and the blobs
whose lengths the header lists.  Nothing in a frame is executed: there is no pickle, and malformed
frames are rejected.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Decoder", "Message", "ProtocolError", "encode"]

_MAGIC = b"answ"
_HEAD = struct.Struct("<4sI")
_MAX_HEADER_BYTES = 1 << 26
_MAX_BLOB_BYTES = 1 << 33


class ProtocolError(Exception):
    """The other side wrote something that is not a message."""


@dataclass(frozen=True)
class Message:
    """One request or answer: its kind, its JSON fields, and raw bytes."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)
    blobs: tuple[bytes, ...] = ()


def encode(message: Message) -> bytes:
    """Encode *message* as one frame."""
    header = json.dumps(
        {
            "kind": message.kind,
            "fields": dict(message.fields),
            "blobs": [len(blob) for blob in message.blobs],
        }
    ).encode()
    return b"".join((_HEAD.pack(_MAGIC, len(header)), header, *message.blobs))


class Decoder:
    """Splits a byte stream, fed in pieces of any size, into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._header: tuple[str, Mapping[str, object], list[int]] | None = None

    @property
    def is_empty(self) -> bool:
        """True between messages, when nothing fed is left in the buffer."""
        return not self._buffer and self._header is None

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take(self) -> Message | None:
        """Return the next message, or None if incomplete; raises :class:`ProtocolError`."""
        if self._header is None:
            self._header = self._take_header()
        if self._header is None:
            return None
        kind, fields, sizes = self._header
        if len(self._buffer) < sum(sizes):
            return None
        blobs = []
        for size in sizes:
            blobs.append(bytes(self._buffer[:size]))
            del self._buffer[:size]
        self._header = None
        return Message(kind, fields, tuple(blobs))

    def _take_header(self) -> tuple[str, Mapping[str, object], list[int]] | None:
        start = bytes(self._buffer[: len(_MAGIC)])
        if not _MAGIC.startswith(start):
            raise ProtocolError(f"expected a message, got {bytes(self._buffer[:40])!r}")
        if len(self._buffer) < _HEAD.size:
            return None
        length = int(_HEAD.unpack_from(self._buffer)[1])
        if length > _MAX_HEADER_BYTES:
            raise ProtocolError(f"a header of {length} bytes is not one of ours")
        if len(self._buffer) < _HEAD.size + length:
            return None
        text = bytes(self._buffer[_HEAD.size : _HEAD.size + length])
        del self._buffer[: _HEAD.size + length]
        return _parsed(text)


def _parsed(text: bytes) -> tuple[str, Mapping[str, object], list[int]]:
    try:
        header = json.loads(text)
        kind, fields, sizes = header["kind"], header["fields"], header["blobs"]
    except (ValueError, TypeError, KeyError) as error:
        raise ProtocolError(f"unreadable header: {error}") from None
    well_formed = (
        isinstance(kind, str)
        and isinstance(fields, dict)
        and isinstance(sizes, list)
        and all(isinstance(size, int) and size >= 0 for size in sizes)
    )
    if not well_formed or sum(sizes) > _MAX_BLOB_BYTES:
        raise ProtocolError(f"a header that is not one of ours: {text[:80]!r}")
    return kind, fields, sizes
