"""Profiling of a run by activity: each second counts once, for the innermost activity.

>>> with Profiler() as run:
...     with profiled(Activity.SEARCH):
...         with profiled(Activity.MODEL):
...             pass
>>> sorted(activity.value for activity in run.seconds)
['model', 'other', 'search']
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from enum import Enum
from types import TracebackType

__all__ = ["Activity", "Profiler", "Span", "charge", "profiled"]

_LEAST_SPAN_S = 1e-3


class Activity(Enum):
    """An activity that takes time in a run."""

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
    """Waiting for other processes that measure on the same cores."""
    CHECK = "check"
    """Computing the reference and comparing results with it."""
    RUN = "run"
    """Timing candidates."""
    PROVE = "prove"
    """Proving that the chosen programs access memory as they should."""
    RETIME = "retime"
    """Timing the finalists again, alternating between them."""
    RECORD = "record"
    """Reading and writing the database."""
    ASSEMBLE = "assemble"
    """Loading the best programs and assembling the model."""
    OTHER = "other"


@dataclass
class Span:
    """A time in which one activity was the innermost; start and end are readings of the clock."""

    activity: Activity
    start: float
    end: float


class Profiler:
    """Measures seconds by activity while entered; time in a nested instance counts for both.

    It profiles only the thread that entered it, so background work is not counted twice.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[Activity, float] = {}
        self._spans: list[Span] = []
        self._stack: list[Activity] = []
        self._since = 0.0
        self._outer: Profiler | None = None
        self._token: Token[Profiler | None] | None = None

    def __enter__(self) -> Profiler:
        self._outer = _current.get()
        if self._outer is not None:
            self._outer._count()
        self._token = _current.set(self)
        self._stack = [Activity.OTHER]
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
    def seconds(self) -> Mapping[Activity, float]:
        """Seconds of each activity so far, in the order of :class:`Activity`."""
        if self._stack:
            self._count()
        return {one: self._seconds[one] for one in Activity if one in self._seconds}

    def take_spans(self) -> list[Span]:
        """The spans since the last call, in order; those below a millisecond are left out."""
        self._count()
        spans, self._spans = self._spans, []
        return spans

    def enter(self, activity: Activity) -> None:
        """Count time for *activity* from now on."""
        self._count()
        self._stack.append(activity)

    def leave(self) -> None:
        """Count time for the previous activity again."""
        self._count()
        self._stack.pop()

    def charge(self, activity: Activity, seconds: float) -> None:
        """Move *seconds* from the current activity to *activity*, at most as many as it has."""
        self._count()
        here = self._stack[-1]
        moved = min(seconds, self._seconds.get(here, 0.0))
        self._add(here, -moved)
        self._add(activity, moved)

    def _count(self) -> None:
        now, activity = self._clock(), self._stack[-1]
        self._add(activity, now - self._since)
        last = self._spans[-1] if self._spans else None
        is_same = last is not None and last.activity is activity
        if last is not None and is_same and self._since - last.end < _LEAST_SPAN_S:
            last.end = now
        elif now - self._since >= _LEAST_SPAN_S:
            self._spans.append(Span(activity, self._since, now))
        self._since = now

    def _take(self, inner: Mapping[Activity, float]) -> None:
        """Add the seconds of an inner instance that has just been left."""
        for activity, seconds in inner.items():
            self._add(self._stack[-1] if activity is Activity.OTHER else activity, seconds)
        self._since = self._clock()

    def _add(self, activity: Activity, seconds: float) -> None:
        self._seconds[activity] = self._seconds.get(activity, 0.0) + seconds


_current: ContextVar[Profiler | None] = ContextVar("profiler", default=None)


@contextmanager
def profiled(activity: Activity) -> Iterator[None]:
    """Count the time inside for *activity*, if a :class:`Profiler` profiles this thread.

    A function that it decorates counts as a whole.
    """
    profiler = _current.get()
    if profiler is None:
        yield
        return
    profiler.enter(activity)
    try:
        yield
    finally:
        profiler.leave()


def charge(activity: Activity, seconds: float) -> None:
    """Count the last *seconds* for *activity*, as reported by another process about its work."""
    profiler = _current.get()
    if profiler is not None:
        profiler.charge(activity, seconds)
