"""Candidates measured one by one, each before an observer's eyes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ansorpy.measure.build.built import Built
from ansorpy.measure.result import MeasureResult
from ansorpy.measure.run.interfaces import Observer
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.schedule.state import State

__all__ = ["observed"]


def observed(
    candidates: Sequence[State],
    builds: Sequence[Built | MeasureResult],
    observer: Observer | None,
    measure: Callable[[State, Built], MeasureResult],
) -> Iterator[MeasureResult]:
    """The results of *candidates*, in order: what *observer* knows, or why there is no code, or
    what *measure* returns, right before the result is yielded.

    The observer is told of the others' ends.
    """
    for state, build in zip(candidates, builds, strict=True):
        known = None if observer is None else observer.started(state)
        if known is not None:
            yield known
            continue
        result = build if isinstance(build, MeasureResult) else measure(state, build)
        if observer is not None:
            built = build if isinstance(build, Built) else None
            observer.ended(TrialEnd(state, result, built))
        yield result
