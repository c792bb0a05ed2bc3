"""The trace of a model's runs, from the events that their threads recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansorpy.codegen.llvm.threads.traced import EventKind
from ansorpy.trace import Trace

__all__ = ["trace_of_runs"]

_LEAST_WAIT_NS = 1000
"""Shorter gaps are the recording itself."""


@dataclass(frozen=True)
class _Event:
    """An event of :meth:`ansorpy.codegen.llvm.threads.traced.Recorder.events`."""

    kind: EventKind
    number: int
    thread: int
    start_ns: int
    end_ns: int

    def contains(self, other: _Event) -> bool:
        return self.start_ns <= other.start_ns and other.end_ns <= self.end_ns


def trace_of_runs(
    name: str,
    calls: Sequence[str],
    runs: Sequence[tuple[int, int]],
    events: NDArray[np.int64],
) -> Trace:
    """The trace of *runs*, whose starts and ends are in ns, of a model with these *calls*.

    The calling thread has a slice for each run, in it one for each call, and in this those for its
    own pieces and for its waits of a microsecond or more: before its first piece, until the other
    threads are called, and behind its last one, until theirs are done.  The other threads have
    slices for their pieces.
    """
    trace = Trace(name)
    caller = "thread 0, which calls"
    for number, (start, end) in enumerate(runs):
        trace.add(caller, "run", start * 1e-3, end * 1e-3, number=number)
    made = [_Event(EventKind(row[0]), *row[1:]) for row in events.tolist()]
    made.sort(key=lambda event: (event.start_ns, -event.end_ns))
    own = [event for event in made if event.kind is EventKind.CALL]
    others = dict.fromkeys(
        event.thread for event in made if own and event.thread != own[0].thread
    )  # fmt: skip
    tracks = {thread: f"thread {number}" for number, thread in enumerate(others, 1)}
    for call, loops, pieces in _nested(own, made):
        label = calls[call.number]
        trace.add(caller, label, call.start_ns * 1e-3, call.end_ns * 1e-3, call=call.number)
        for piece in pieces:
            track = tracks.get(piece.thread, caller)
            trace.add(
                track, label, piece.start_ns * 1e-3, piece.end_ns * 1e-3, piece=piece.number
            )  # fmt: skip
        for loop in loops:
            mine = [p for p in pieces if loop.contains(p) and p.thread == call.thread]
            for start, end in _gaps(loop, mine):
                if end - start >= _LEAST_WAIT_NS:
                    trace.add(caller, "wait", start * 1e-3, end * 1e-3, threads=loop.number)
    return trace


def _nested(
    calls: Sequence[_Event], events: Sequence[_Event]
) -> Iterator[tuple[_Event, list[_Event], list[_Event]]]:
    """Each call with the loops and the pieces in it; all are in the order of their starts."""
    rest = iter([event for event in events if event.kind is not EventKind.CALL])
    event = next(rest, None)
    for call in calls:
        loops, pieces = list[_Event](), list[_Event]()
        while event is not None and event.start_ns <= call.end_ns:
            (loops if event.kind is EventKind.LOOP else pieces).append(event)
            event = next(rest, None)
        yield call, loops, pieces


def _gaps(loop: _Event, pieces: Sequence[_Event]) -> Iterator[tuple[int, int]]:
    """The times of *loop* that none of *pieces* takes."""
    at = loop.start_ns
    for piece in pieces:
        if piece.start_ns > at:
            yield at, piece.start_ns
        at = max(at, piece.end_ns)
    if loop.end_ns > at:
        yield at, loop.end_ns
