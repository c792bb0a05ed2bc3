"""What is known of a running search, from the events that it reported so far."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ansorpy.api.events import PeerTimed, Planned, Tuned
from ansorpy.measure.result import TrialKind
from ansorpy.search.events import Event, Phase, Progress
from ansorpy.tasks.trial_plan import expected_shares

__all__ = ["Board", "Row"]


@dataclass
class Row:
    """One task.

    Args:
        calls: Its calls in all networks, weighted.
        least_s: Its roofline: no program takes fewer seconds.
        planned: About how many trials this run plans for it.
        before: Trials of earlier runs.
        trials: Trials of all runs.
        best_s: Seconds of its fastest correct program.
        first_s: Seconds of its first correct program.
    """

    name: str
    calls: float = 1.0
    least_s: float = 0.0
    planned: int | None = None
    before: int = 0
    trials: int = 0
    best_s: float | None = None
    first_s: float | None = None
    failures: Mapping[TrialKind, int] = field(default_factory=dict)
    improved_at: float = float("-inf")

    @property
    def got(self) -> int:
        """Trials of this run."""
        return self.trials - self.before

    @property
    def roofline(self) -> float | None:
        """Its roofline as a fraction of its time: 1 if no program can be faster."""
        return None if not self.best_s or not self.least_s else self.least_s / self.best_s


class Board:
    """A listener that keeps what a search has reported; displays draw it.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, now: float | None = None) -> None:
        self.name = ""
        self.rows: dict[str, Row] = {}
        self.phase: Phase | None = None
        self.current = ""
        self.total_s: float | None = None
        self.untuned_s: float | None = None
        self.peers: dict[str, float] = {}
        self.trials = 0
        self.trial_limit: int | None = None
        self.planned: int | None = None
        self.time_limit_s: float | None = None
        self.picked: tuple[int, int] | None = None
        self.ended = ""
        self._left_s: float | None = None
        self.began_at = self.noted_at = time.monotonic() if now is None else now

    def __call__(self, event: Event, now: float | None = None) -> None:
        """Note *event*, which was reported at *now*."""
        self.noted_at = time.monotonic() if now is None else now
        if isinstance(event, Planned):
            self._plan(event)
        elif isinstance(event, PeerTimed):
            self.peers[event.name] = event.seconds
        elif isinstance(event, Tuned):
            self._end(event)
        elif isinstance(event, Progress):
            self._progress(event)

    def _plan(self, event: Planned) -> None:
        self.name, self.began_at = event.name, self.noted_at
        budget, plan = event.request.budget, event.plan
        if budget is None or plan is None:
            return
        self.time_limit_s, self._left_s = budget.time_limit_s, budget.time_limit_s
        self.planned = plan.trials
        for task in plan.tasks:
            before = task.before
            self.rows[task.task.key] = Row(
                task.task.name, task.weight, task.least_s, task.trials, before.trials,
                before.trials, before.best_s,
            )  # fmt: skip
        self.trials = sum(row.before for row in self.rows.values())

    def _progress(self, event: Progress) -> None:
        self.phase, self.current = event.phase, event.key
        if event.phase is Phase.PICKED:
            self.picked = event.total_trials, event.trial_limit or event.total_trials
            return
        self.trials, self.trial_limit = event.total_trials, event.trial_limit
        self.total_s, self.untuned_s, self._left_s = event.total_s, event.untuned_s, event.left_s
        for key, calls in (event.calls or {}).items():
            if key in self.rows:
                self.rows[key].calls = calls
        if not event.key:
            return
        row = self.rows.setdefault(event.key, Row(event.task))
        if event.best_s is not None and event.best_s != row.best_s:
            row.improved_at = self.noted_at
        row.trials, row.best_s, row.first_s = event.trials, event.best_s, event.first_s
        row.failures = event.failures or {}

    def _end(self, event: Tuned) -> None:
        self.ended, self.phase, self.current = event.tuning.ended.value, Phase.FINISHED, ""
        for outcome in event.tuning.outcomes:
            self.rows.setdefault(outcome.task.key, Row(outcome.task.name))

    @property
    def failures(self) -> dict[TrialKind, int]:
        """Failed trials of all tasks by kind, the most frequent first."""
        total: dict[TrialKind, int] = {}
        for row in self.rows.values():
            for kind, count in row.failures.items():
                total[kind] = total.get(kind, 0) + count
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    @property
    def got(self) -> int:
        """Trials of this run."""
        return self.trials - sum(row.before for row in self.rows.values())

    def elapsed_s(self, now: float | None = None) -> float:
        """Seconds since the plan was made."""
        return (time.monotonic() if now is None else now) - self.began_at

    def left_s(self, now: float | None = None) -> float | None:
        """Seconds to the time limit, or at this pace to the limit of trials; None: unknown."""
        now = time.monotonic() if now is None else now
        if self._left_s is not None:
            return max(self._left_s - (now - self.noted_at), 0.0)
        left, got = (self.trial_limit or 0) - self.trials, self.got
        return left * self.elapsed_s(now) / got if got > 0 and left > 0 else None

    def done(self, now: float | None = None) -> float:
        """Fraction of the budget that is spent, from 0 to 1."""
        left_s = self.left_s(now)
        parts = [self.trials / self.trial_limit] if self.trial_limit else []
        if self.time_limit_s and left_s is not None:
            parts.append(1 - left_s / self.time_limit_s)
        return min(max(parts, default=0.0), 1.0)

    def pace(self, now: float | None = None) -> float:
        """How many trials there will be, relative to the plan: 1 until a tenth of it is over.

        Under a time limit alone, the plan is a guess of how long trials take.
        """
        done = self.done(now)
        if self.trial_limit or not self.planned or done < 0.1 or not self.got:
            return 1.0
        return self.got / done / self.planned

    def shares(self) -> dict[str, float]:
        """Fraction of the time that each task takes, by key; expected before it has a program."""
        rows = self.rows.values()
        found = expected_shares(
            [row.calls for row in rows], [row.least_s for row in rows], [row.best_s for row in rows]
        )
        return dict(zip(self.rows, found, strict=True))

    @property
    def missing(self) -> int:
        """Tasks that are called and have no correct program yet."""
        return sum(row.best_s is None for row in self.rows.values() if row.calls)

    @property
    def gain(self) -> float | None:
        """How many times as fast as the first programs the fastest ones are; None: unknown."""
        return self.untuned_s / self.total_s if self.untuned_s and self.total_s else None
