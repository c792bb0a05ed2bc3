"""The event of a trial's end, passed from the machine that ran it to the search's listener."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansorpy.measure.build.built import Built
from ansorpy.measure.records.rows import Record
from ansorpy.measure.result import MeasureResult
from ansorpy.schedule.state import State

__all__ = ["OnEnd", "TrialEnd", "ignore"]


@dataclass(frozen=True)
class TrialEnd:
    """A candidate has its result.

    Args:
        built: The code that ran; None if there is none.
        record: Its record in the database; None until it is recorded, and if it was CUT.
        is_own: False if another tuner measured it, so that it uses up no trial of this run.
    """

    state: State
    result: MeasureResult
    built: Built | None = None
    record: Record | None = None
    is_own: bool = True


OnEnd = Callable[[TrialEnd], None]
"""Called as soon as a trial ends, in the caller's thread."""


def ignore(end: TrialEnd) -> None:
    """Ignore the end of a trial."""
