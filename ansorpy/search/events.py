"""Progress reports of a running search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ansorpy.measure.result import TrialKind
from ansorpy.measure.trial_end import TrialEnd
from ansorpy.profiler import Activity

__all__ = ["Event", "Listener", "Phase", "Progress", "silent"]


class Event:
    """Base class of the events that a search reports to its listeners."""


class Phase(Enum):
    """What the search is doing."""

    RESUMED = "resumed"
    SEARCHING = "searching"
    MEASURED = "measured"
    RETIMED = "retimed"
    PICKED = "picked"
    FINISHED = "finished"


@dataclass(frozen=True)
class Progress(Event):
    """A progress report.

    Args:
        task: Name of the current task; empty for reports on the whole run.
        key: Key of that task.
        trials: Trials spent on that task; ``total_trials`` counts all tasks, out of
            ``trial_limit``.
        best_s: Seconds of the task's fastest correct program; None before there is one.
        first_s: Seconds of its first correct program, which the cost model chose before anything
            was measured; None before there is one.
        total_s: Weighted sum of best seconds over all tasks; None until every task has one.
        untuned_s: The same sum with the first programs instead.
        calls: Weighted number of calls of each task, by key, with networks cut in their fastest
            known ways.
        failures: Failed trials of the task by kind.
        trial: The trial that just ended, if one did.
        correlation: Rank correlation of scores with measured speed in this round.
        left_s: Seconds until the time limit; None without one.
        seconds: Time of each activity of the run so far.
    """

    phase: Phase
    task: str = ""
    key: str = ""
    trials: int = 0
    total_trials: int = 0
    trial_limit: int | None = None
    best_s: float | None = None
    first_s: float | None = None
    total_s: float | None = None
    untuned_s: float | None = None
    calls: Mapping[str, float] | None = None
    failures: Mapping[TrialKind, int] | None = None
    trial: TrialEnd | None = None
    correlation: float | None = None
    left_s: float | None = None
    seconds: Mapping[Activity, float] | None = None


Listener = Callable[[Progress], None]
"""Receives each report, in the driver's thread; must return quickly."""


def silent(event: Event) -> None:
    """A listener that ignores everything."""
