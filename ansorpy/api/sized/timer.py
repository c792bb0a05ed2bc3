"""Time schedules at sizes for which they were not found, as long as the request allows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ansorpy.api.tuner import Tuner
from ansorpy.deadline import until
from ansorpy.ir.task import Task
from ansorpy.measure.records.recording import measure_recorded
from ansorpy.measure.result import MeasureResult, TrialKind
from ansorpy.measure.run.interfaces import Expecting
from ansorpy.schedule.state import State

__all__ = ["SHARE", "Timer"]

SHARE = 0.3
"""Share of a time limit that is kept for timing the schedules found at other sizes."""


@dataclass
class Timer:
    """Times programs as long as the request allows: as many as it has trials, and in its time.

    Args:
        end: When its time is over, by ``time.monotonic()``.
        left: How many more programs may be timed; infinite if only the time counts.
        pause: When the time of the definition at hand is over.
        spared: How many programs are left to the definitions after the one at hand.
    """

    tuner: Tuner
    end: float
    left: float
    pause: float = inf
    spared: float = 0

    @staticmethod
    def of(tuner: Tuner, tasks: int) -> Timer:
        """What the request of *tuner*, which tuned this number of tasks, allows."""
        budget = tuner.request.budget
        if budget is None:
            return Timer(tuner, 0.0, 0)
        limits = [budget.trials, budget.trials_per_task and budget.trials_per_task * tasks]
        end = inf if budget.time_limit_s is None else tuner.began_at + budget.time_limit_s
        return Timer(tuner, end, min((n for n in limits if n is not None), default=inf))

    def allot(self, share: float) -> None:
        """Give the definition at hand *share* of the time and of the programs that are left."""
        now = time.monotonic()
        self.pause = now + share * (self.end - now)
        if self.left < inf:
            self.spared = round((1 - share) * self.left)

    @property
    def _is_time(self) -> bool:
        return self.left > self.spared and time.monotonic() < min(self.end, self.pause)

    def recorded(self, task: Task, states: Sequence[State]) -> list[float | None]:
        """Recorded seconds of each of *states*, programs of *task*; infinite for those that fail.

        None for what is not recorded.
        """
        records = [self.tuner.database.lookup(task, state) for state in states]
        return [None if record is None else _seconds(record.result) for record in records]

    def failures(self, task: Task, states: Sequence[State]) -> list[str]:
        """Why those of *states*, programs of *task*, that are recorded as failed did so."""
        records = [self.tuner.database.lookup(task, state) for state in states]
        failed = [r.result for r in records if r is not None and _seconds(r.result) == inf]
        return [f"{result.kind.value}: {result.reason}" for result in failed]

    def expect(self, task: Task, states: Sequence[State]) -> None:
        """Begin to build *states*, which will be timed for *task* and others at other sizes."""
        runner = self.tuner.runner
        if states and self._is_time and isinstance(runner, Expecting):
            runner.expect(task, states)

    def seconds(self, task: Task, states: Sequence[State]) -> list[float | None]:
        """As :meth:`recorded`, or else measured; None for what may not be measured any more."""
        tuner = self.tuner
        found = self.recorded(task, states)
        new = [n for n, seconds in enumerate(found) if seconds is None]
        if self.left < inf:
            new = new[: max(int(self.left - self.spared), 0)]
        if new and self._is_time:
            tuner.request.stop()
            self.left -= len(new)
            with until(self.end):
                results = measure_recorded(
                    tuner.runner, tuner.database, task, [states[n] for n in new]
                )
            for n, result in zip(new, results, strict=True):
                found[n] = None if result.kind is TrialKind.CUT else _seconds(result)
        return found


def _seconds(result: MeasureResult) -> float:
    return result.median_s if result.kind in (TrialKind.OK, TrialKind.SLOW) else inf
