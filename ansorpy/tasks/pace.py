"""Estimate how long rounds take, to decide how many trials the next one gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from ansorpy.measure.run.timing import TimingPolicy, interleaved_s
from ansorpy.search.history import TaskHistory
from ansorpy.tasks.budget import LARGEST_ROUND, Budget
from ansorpy.tasks.progress import TaskProgress

__all__ = [
    "FIRST_ROUND_S", "LEAST_ROUND", "RETIME_S", "ROUND_S", "TRIAL_S", "USUAL_ROUND",
    "Pace", "least_retime_s", "retime_s",
]  # fmt: skip

ROUND_S = 0.5
"""Seconds of a round apart from its trials: evolution, scoring, training (measured: 0.2 to 0.8)."""
TRIAL_S = 0.05
"""Seconds of a trial: its build (workers build in parallel), its check and its timing."""
FIRST_ROUND_S = 1.0
"""Seconds of a task's first round apart from its trials.

This round also derives the sketches and computes the reference.
"""
RETIME_S = 0.4
"""Planned seconds for re-timing a task's finalists, apart from their calls (measured: 0.2-0.5)."""
LEAST_ROUND = 2
"""Minimum trials of a first round: the best candidate and the default schedule."""
_ASSUMED_SCALE = 1.75
"""How much slower than here first rounds are taken to be until some were timed.

The heaviest task comes first, and what its round takes too long is lost to all others.  Of 1, 1.25,
1.5, 1.75 and 2, only 1.75 gives every heavy task half its plan in 180 cases of simulated machines.
"""
_DOUBT_S = 0.5
"""As many expected seconds as this weigh as much as what later rounds were expected to take."""
USUAL_ROUND = 16
"""Minimum trials of a later round under a time limit, so that most of the round is measuring."""


@dataclass
class _Elapsed:
    """Actual and expected seconds of the rounds so far."""

    took_s: float = 0.0
    expected_s: float = 0.0

    def scale(self, prior: float, doubt_s: float) -> float:
        """Ratio of actual to expected time; *prior* weighs as much as *doubt_s* seconds."""
        return (self.took_s + doubt_s * prior) / (self.expected_s + doubt_s)


@dataclass
class _LaterRounds:
    """Later rounds so far: their trials, and what they take apart from these."""

    rounds: _Elapsed = field(default_factory=_Elapsed)
    trials: _Elapsed = field(default_factory=_Elapsed)

    def note(self, trials: int, seconds: float, measuring_s: float) -> None:
        self.trials.took_s += measuring_s
        self.trials.expected_s += trials * TRIAL_S
        self.rounds.took_s += seconds - measuring_s
        self.rounds.expected_s += ROUND_S


@dataclass
class Pace:
    """Sizes of rounds under a budget.

    A first round gets at most the task's planned trials.  With a time limit, it has at least
    :data:`LEAST_ROUND` trials.  More are distributed by the tasks' planned shares, up to
    ``largest_first`` for the heaviest task, and up to ``first_share`` of the remaining time.
    Later rounds take a quarter of the task's share of the time left, but are large enough that
    measuring dominates.  No round is planned to exceed the time left.
    """

    budget: Budget
    tasks: int
    first_share: float = 0.5
    largest_first: int = 16
    _first: _Elapsed = field(default_factory=_Elapsed)
    _later: _LaterRounds = field(default_factory=_LaterRounds)
    _each: dict[int, _LaterRounds] = field(default_factory=dict)
    _extra: int = 0
    """Trials that first rounds had beyond the minimum."""

    def note(
        self, at: int, is_first: bool, trials: int, seconds: float, measuring_s: float
    ) -> None:
        """Record that a round of task *at* took *seconds*, *measuring_s* of these for its *trials*.

        First rounds are estimated as a whole.
        """
        if is_first:
            self._first.took_s += seconds
            self._first.expected_s += FIRST_ROUND_S + trials * TRIAL_S
            self._extra += max(trials - LEAST_ROUND, 0)
            return
        for later in (self._later, self._each.setdefault(at, _LaterRounds())):
            later.note(trials, seconds, measuring_s)

    def round_s(self, at: int, is_first: bool, trials: int) -> float:
        """Expected seconds of a round of task *at*."""
        fixed_s, trial_s = self._parts_s(at, is_first)
        return fixed_s + trials * trial_s

    @property
    def usual(self) -> int:
        """Minimum trials of a later round while there is time for four; half as many otherwise."""
        round_s, trial_s = self._all_later_s
        share = round_s / trial_s / (ROUND_S / TRIAL_S)
        return min(max(USUAL_ROUND, ceil(share * USUAL_ROUND)), LARGEST_ROUND)

    def size(self, at: int, tasks: Sequence[TaskProgress], left_s: float | None) -> int:
        """Trials of the next round of task *at*, with *left_s* seconds left to search.

        That of a resumed task is as large as any later one, though it may take as long as a first.
        """
        is_first = not tasks[at].trials
        limits = [self.budget.round_size(self.tasks)]
        if is_first and self.budget.trials is not None:
            limits.append(max(LEAST_ROUND, round(tasks[at].share * self.budget.trials)))
        if left_s is not None:
            fixed_s, trial_s = self._parts_s(at, is_first)
            limits.append(int((left_s - fixed_s) / trial_s))
            limits.append(
                self._first_size(at, tasks, left_s)
                if is_first
                else self._later_size(at, tasks, left_s)
            )
        return max(1, min(limits))

    def _first_size(self, at: int, tasks: Sequence[TaskProgress], left_s: float) -> int:
        """Trials of a first round.

        Shares refer to all tasks, so the last tasks do not inherit what heavy ones left over.
        """
        fresh = sum(task.alive and not task.trials for task in tasks)
        least_s = fresh * (FIRST_ROUND_S + LEAST_ROUND * TRIAL_S)
        spare_s = left_s / self._first_scale - least_s
        spare = self.first_share * (max(spare_s, 0.0) / TRIAL_S + self._extra)
        heaviest = max(task.share for task in tasks)
        most = self.largest_first - LEAST_ROUND
        part = tasks[at].share / heaviest if heaviest else 1.0
        extra = min(part * most, tasks[at].share * spare, spare - self._extra)
        return LEAST_ROUND + max(int(extra), 0)

    def _later_size(self, at: int, tasks: Sequence[TaskProgress], left_s: float) -> int:
        alive = sum(task.share for task in tasks if task.alive)
        share = tasks[at].share / alive if alive else 1.0
        round_s, trial_s = self._all_later_s
        trials = left_s / (trial_s + round_s / self.usual)
        return int(max(share * trials / 4, min(trials / 4, self.usual), self.usual / 2))

    @property
    def _first_scale(self) -> float:
        return self._first.scale(_ASSUMED_SCALE, 2.0)

    @property
    def _all_later_s(self) -> tuple[float, float]:
        """Seconds of a later round of any task apart from its trials, and of a trial.

        Before there were any, both are expected to be as slow as the first rounds were.
        """
        prior = self._first.scale(1.0, 2.0)
        rounds, trials = (
            elapsed.scale(prior, _DOUBT_S) for elapsed in (self._later.rounds, self._later.trials)
        )
        return ROUND_S * rounds, TRIAL_S * trials

    def _parts_s(self, at: int, is_first: bool) -> tuple[float, float]:
        """Seconds of a round of task *at* apart from its trials, and of a trial.

        A task's later rounds are taken to be like those of all until it had some.
        """
        if is_first:
            return self._first_scale * FIRST_ROUND_S, self._first_scale * TRIAL_S
        own = self._each.get(at, _LaterRounds())
        round_s, trial_s = self._all_later_s
        return (
            ROUND_S * own.rounds.scale(round_s / ROUND_S, _DOUBT_S),
            TRIAL_S * own.trials.scale(trial_s / TRIAL_S, _DOUBT_S),
        )


def retime_s(history: TaskHistory) -> float:
    """Planned seconds for re-timing the finalists of one task."""
    if history.retimed:
        return 0.0
    return RETIME_S + interleaved_s([best.seconds for best in history.finalists], TimingPolicy())


def least_retime_s(history: TaskHistory) -> float:
    """Minimum seconds for re-timing these finalists: a check, a first call and a sample of each."""
    return 3 * sum(best.seconds for best in history.finalists)
