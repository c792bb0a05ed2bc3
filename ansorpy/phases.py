"""Where the seconds of a run go: each is counted once, for the innermost phase it was spent in.

>>> with Phases() as run:
...     with phase(Part.SEARCH):
...         with phase(Part.MODEL):
...             pass
>>> sorted(part.value for part in run.seconds)
['model', 'other', 'search']
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from enum import Enum
from types import TracebackType

__all__ = ["Part", "Phases", "charge", "phase"]


class Part(Enum):
    """What a second was spent on."""

    OPEN = "open"
    """Reading the networks, cutting them into tasks."""
    CALIBRATE = "calibrate"
    """Measuring what this machine can do, once."""
    RESUME = "resume"
    """Reading earlier records."""
    SEARCH = "search"
    """Making candidates: drawing, breeding, picking, binding."""
    MODEL = "model"
    """Features, predictions and training of the cost model."""
    BUILD = "build"
    """Candidates to object code, workers' start included."""
    WAIT = "wait"
    """For others who time something on the same cores."""
    CHECK = "check"
    """Comparing results with the reference, and making it."""
    RUN = "run"
    """Timing candidates."""
    RETIME = "retime"
    """Timing finalists again, in turns."""
    RECORD = "record"
    """Writing to and reading from the database."""
    ASSEMBLE = "assemble"
    """Taking the best programs, and putting the model together."""
    OTHER = "other"


class Phases:
    """Seconds by part while it is entered; one entered inside another counts for both.

    Only the thread that entered it is watched, so work in the background is not counted twice.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[Part, float] = {}
        self._stack: list[Part] = []
        self._since = 0.0
        self._outer: Phases | None = None
        self._token: Token[Phases | None] | None = None

    def __enter__(self) -> Phases:
        self._outer = _current.get()
        if self._outer is not None:
            self._outer._count()
        self._token = _current.set(self)
        self._stack = [Part.OTHER]
        self._since = self._clock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None, "entered before it is left"
        self._count()
        self._stack = []
        _current.reset(self._token)
        if self._outer is not None:
            self._outer._take(self._seconds)

    @property
    def seconds(self) -> Mapping[Part, float]:
        """Seconds of each part so far, in the order of :class:`Part`."""
        if self._stack:
            self._count()
        return {part: self._seconds[part] for part in Part if part in self._seconds}

    @property
    def total_s(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values())

    def enter(self, part: Part) -> None:
        """From here on seconds count for *part*."""
        self._count()
        self._stack.append(part)

    def leave(self) -> None:
        """From here on seconds count for the part before again."""
        self._count()
        self._stack.pop()

    def charge(self, part: Part, seconds: float) -> None:
        """Count *seconds* of the part at hand for *part* instead, at most those there are."""
        self._count()
        here = self._stack[-1]
        moved = min(seconds, self._seconds.get(here, 0.0))
        self._add(here, -moved)
        self._add(part, moved)

    def _count(self) -> None:
        now = self._clock()
        self._add(self._stack[-1], now - self._since)
        self._since = now

    def _take(self, inner: Mapping[Part, float]) -> None:
        """Count what an inner watch counted, which has left just now."""
        for part, seconds in inner.items():
            self._add(self._stack[-1] if part is Part.OTHER else part, seconds)
        self._since = self._clock()

    def _add(self, part: Part, seconds: float) -> None:
        self._seconds[part] = self._seconds.get(part, 0.0) + seconds


_current: ContextVar[Phases | None] = ContextVar("phases", default=None)


@contextmanager
def phase(part: Part) -> Iterator[None]:
    """Count the seconds inside for *part*, for whoever watches this thread."""
    watch = _current.get()
    if watch is None:
        yield
        return
    watch.enter(part)
    try:
        yield
    finally:
        watch.leave()


def charge(part: Part, seconds: float) -> None:
    """Count *seconds* that just went by for *part*: what another process says of its work."""
    watch = _current.get()
    if watch is not None:
        watch.charge(part, seconds)
