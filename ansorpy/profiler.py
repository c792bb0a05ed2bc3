"""Where a run spends its time: each second counts once, for the innermost active phase.

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
    """Reading the networks and cutting them into tasks."""
    CALIBRATE = "calibrate"
    """Measuring this machine's rates, once."""
    RESUME = "resume"
    """Reading earlier records."""
    SEARCH = "search"
    """Generating candidates: sampling, evolving, selecting, binding."""
    MODEL = "model"
    """Extracting features, and training and querying the cost model."""
    BUILD = "build"
    """Compiling candidates to object code, including the start of workers."""
    WAIT = "wait"
    """Waiting for others that time something on the same cores."""
    CHECK = "check"
    """Computing the reference and comparing results with it."""
    RUN = "run"
    """Timing candidates."""
    RETIME = "retime"
    """Timing the finalists again, alternating between them."""
    RECORD = "record"
    """Reading and writing the database."""
    ASSEMBLE = "assemble"
    """Loading the best programs and assembling the model."""
    OTHER = "other"


class Phases:
    """Seconds by part while entered; time in a nested instance counts for both.

    It watches only the thread that entered it, so background work is not counted twice.
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
        """Count time for *part* from now on."""
        self._count()
        self._stack.append(part)

    def leave(self) -> None:
        """Count time for the previous part again."""
        self._count()
        self._stack.pop()

    def charge(self, part: Part, seconds: float) -> None:
        """Move *seconds* from the current part to *part*, at most as many as it has."""
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
        """Add the seconds of an inner instance that has just been left."""
        for part, seconds in inner.items():
            self._add(self._stack[-1] if part is Part.OTHER else part, seconds)
        self._since = self._clock()

    def _add(self, part: Part, seconds: float) -> None:
        self._seconds[part] = self._seconds.get(part, 0.0) + seconds


_current: ContextVar[Phases | None] = ContextVar("phases", default=None)


@contextmanager
def phase(part: Part) -> Iterator[None]:
    """Count the time inside for *part*, if a :class:`Phases` watches this thread."""
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
    """Count the last *seconds* for *part*, as reported by another process about its work."""
    watch = _current.get()
    if watch is not None:
        watch.charge(part, seconds)
