"""The journal of a tuning run: its actions and external inputs in order, recorded or replayed.

A run is determined by its request, the records it starts from, the results it receives and the
clock.  The last two go through a journal: :class:`RecordingJournal` saves them in the database;
:class:`ReplayJournal` returns the saved ones and checks that the run acts as it did then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from ansorpy.errors import ForeignFile
from ansorpy.measure.records.database import Database
from ansorpy.measure.records.rows import EventRow

__all__ = ["TIMES", "Diverged", "Journal", "RecordingJournal", "ReplayEnded", "ReplayJournal"]

TIMES = "times"
"""Kind of the events that say when a run did what, by the system's clock, for its trace.  They are
recorded beside the journal and are no part of what a replay repeats: ``activities`` has name, start
and end of each, ``builds`` start and end."""

Body = Mapping[str, object]


class Journal(Protocol):
    """Receives every event of a run, and serves as its clock.

    Kinds: ``request``, ``clock``, ``ask`` (programs about to be measured), ``tell`` (the numbers of
    their results), ``refit``, ``retime`` (the numbers of the results of finalists timed again),
    ``stopped`` (by the user), ``found``.
    """

    def note(self, kind: str, body: Body) -> None:
        """Record or check an event of the run; *body* is JSON-serializable."""

    def seconds(self) -> float:
        """Seconds since the run began.  Every decision that depends on time uses this."""

    def moment(self, seconds: float) -> float:
        """The ``time.monotonic()`` at which the run will be *seconds* old; infinite in a replay."""

    def shown_s(self) -> float:
        """Seconds since the run began, for display only: a replay may show other times."""


@dataclass
class RecordingJournal:
    """Saves the run's events in *database*."""

    database: Database
    began_at: float = field(default_factory=time.monotonic)

    def note(self, kind: str, body: Body) -> None:
        self.database.sessions.log(kind, body)

    def seconds(self) -> float:
        passed = round(self.shown_s(), 6)
        self.note("clock", {"s": passed})
        return passed

    def shown_s(self) -> float:
        return time.monotonic() - self.began_at

    def moment(self, seconds: float) -> float:
        return self.began_at + seconds


class ReplayEnded(Exception):
    """The recorded run ends here: it was killed or it failed."""


class Diverged(Exception):
    """The run did something other than the recorded one.

    ``number`` counts the run's events from 1; ``recorded`` and ``replayed`` are those that differ.
    """

    def __init__(self, number: int, recorded: str, replayed: str) -> None:
        super().__init__(f"event {number}: recorded {recorded}, replayed {replayed}")
        self.number = number
        self.recorded = recorded
        self.replayed = replayed


@dataclass
class ReplayJournal:
    """Follows the *events* of a recorded run and reads the clock from them.

    Raises (from ``expect``, ``note`` and ``seconds``):
        Diverged: The run does not do what the recorded run did.
        ReplayEnded: The recorded run ends here.
        KeyboardInterrupt: The user stopped the recorded run here, or stops this one.
    """

    events: Sequence[EventRow]
    at: int = 0
    """Number of events followed so far."""

    @property
    def next(self) -> EventRow:
        """The event to follow next."""
        if self.at == len(self.events):
            raise ReplayEnded
        return self.events[self.at]

    @property
    def is_stopped_next(self) -> bool:
        """Whether the user stopped the recorded run after the next event."""
        return [event.kind for event in self.events[self.at + 1 : self.at + 2]] == ["stopped"]

    def expect(self, kind: str, body: Body | None = None) -> EventRow:
        """Return the next event, which must be of this *kind* (and have this *body*)."""
        event = self.next
        if (event.kind == "stopped") != (kind == "stopped"):
            raise KeyboardInterrupt
        same = event.kind == kind and (body is None or event.body == json.loads(json.dumps(body)))
        if not same:
            raise Diverged(self.at + 1, _text(event.kind, event.body), _text(kind, body or {}))
        return event

    def note(self, kind: str, body: Body) -> None:
        self.expect(kind, body)
        self.at += 1

    def seconds(self) -> float:
        passed = self.expect("clock").body.get("s")
        if not isinstance(passed, float | int):
            raise ForeignFile(f"event {self.next.id} is not a reading of a clock")
        self.at += 1
        return float(passed)

    def shown_s(self) -> float:
        return 0.0

    def moment(self, seconds: float) -> float:
        return inf


def _text(kind: str, body: Body) -> str:
    return f"{kind} {json.dumps(body)}"
