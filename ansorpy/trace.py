"""Traces: what happened on each of several tracks, for Perfetto and ``chrome://tracing``.

>>> trace = Trace("squeezenet")
>>> trace.add("thread 0", "conv3x3", 10.0, 12.5, piece=1)
>>> trace
<Trace of squeezenet: 1 slice on 1 track, 2.5 us>
>>> [event["ph"] for event in trace.to_dict()["traceEvents"]]
['M', 'M', 'M', 'X']

Format: Trace Event Format (Google), JSON objects of complete events.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansorpy.errors import ForeignFile
from ansorpy.quantities import counted

__all__ = ["Slice", "Trace"]

_PROCESS = 1


@dataclass(frozen=True)
class Slice:
    """Something that happened on a *track* from *start_us* to *end_us*, in microseconds."""

    track: str
    name: str
    start_us: float
    end_us: float
    args: dict[str, object]


@dataclass
class Trace:
    """Slices on tracks; those of one track are disjoint or nested.  *name* says of what."""

    name: str
    slices: list[Slice] = field(default_factory=list)

    def add(self, track: str, name: str, start_us: float, end_us: float, **args: object) -> None:
        """Add a slice; *args* are shown when it is selected."""
        self.slices.append(Slice(track, name, start_us, end_us, args))

    @property
    def tracks(self) -> list[str]:
        """The tracks, in the order of their first slices as they were added."""
        return list(dict.fromkeys(one.track for one in self.slices))

    @property
    def length_us(self) -> float:
        """Microseconds from the first start to the last end."""
        if not self.slices:
            return 0.0
        return max(s.end_us for s in self.slices) - min(s.start_us for s in self.slices)

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON-serializable values; times count from the first start."""
        numbers = {track: number for number, track in enumerate(self.tracks)}
        first = min((one.start_us for one in self.slices), default=0.0)
        events: list[dict[str, Any]] = [_about("process_name", 0, name=self.name)]
        for track, number in numbers.items():
            events.append(_about("thread_name", number, name=track))
            events.append(_about("thread_sort_index", number, sort_index=number))
        for one in sorted(self.slices, key=lambda s: (s.start_us, -s.end_us)):
            start, end = round(one.start_us - first, 3), round(one.end_us - first, 3)
            events.append(
                {
                    "ph": "X",
                    "name": one.name,
                    "pid": _PROCESS,
                    "tid": numbers[one.track],
                    "ts": start,
                    "dur": round(end - start, 3),
                    "args": one.args,
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save(self, path: str | Path) -> Path:
        """Write the trace to the JSON file *path*, which ui.perfetto.dev opens; returns *path*.

        Raises:
            ForeignFile: The file cannot be written.
        """
        path = Path(path)
        try:
            path.write_text(json.dumps(self.to_dict()) + "\n")
        except OSError as error:
            raise ForeignFile(f"cannot write {path}: {error.strerror}") from None
        return path

    def __repr__(self) -> str:
        slices, tracks = counted(len(self.slices), "slice"), counted(len(self.tracks), "track")
        return f"<Trace of {self.name}: {slices} on {tracks}, {self.length_us:.4g} us>"


def _about(what: str, track: int, **args: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": args}
