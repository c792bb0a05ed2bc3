"""Object code stored in a file, since building uses all cores and timing needs a quiet machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ansorpy.config import available_cores
from ansorpy.ir.task import Task
from ansorpy.measure.build.builder import Builder
from ansorpy.measure.build.built import Built, built_from_parts
from ansorpy.measure.records.rows import trial_digest
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.workers.protocol import Decoder, Message, encode
from ansorpy.schedule.state import State

__all__ = ["Prebuilt"]


class Prebuilt:
    """A build service for one task that appends successful builds to *path*."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._builder = Builder(available_cores())
        self._known: dict[str, Built] = {}
        decoder = Decoder()
        decoder.feed(path.read_bytes() if path.exists() else b"")
        while (message := decoder.take()) is not None:
            header = message.fields["header"]
            assert isinstance(header, dict)
            self._known[message.kind] = built_from_parts(header, message.blobs)
        if not decoder.is_empty:
            # The writer was stopped in the middle of the last entry.
            path.unlink()
            self._known.clear()

    def build(self, task: Task, states: Sequence[State]) -> list[Built | MeasureResult]:
        """Build *states*; return object code, or the reason for its absence, in order."""
        keys = [trial_digest(state) for state in states]
        missing = [n for n, key in enumerate(keys) if key not in self._known]
        fresh = self._builder.build(task, [states[n] for n in missing]) if missing else []
        found: dict[str, Built | MeasureResult] = dict(
            zip((keys[n] for n in missing), fresh, strict=True)
        )
        with open(self._path, "ab") as file:
            for key, built in found.items():
                if isinstance(built, Built):
                    self._known[key] = built
                    header, blobs = built.parts()
                    file.write(encode(Message(key, {"header": header}, blobs)))
        return [self._known.get(key) or found[key] for key in keys]

    def close(self) -> None:
        """End the workers."""
        self._builder.close()
