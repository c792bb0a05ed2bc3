"""Estimating how long rounds take, to decide how many trials the next one gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ansorpy.measure.timing import TimingPolicy, interleaved_s
from ansorpy.search.history import History
from ansorpy.tasks.budget import Budget
from ansorpy.tasks.standing import Standing

__all__ = [
    "FIRST_X", "RETIME_S", "ROUND_S", "TRIAL_S", "USUAL_ROUND", "Pace", "least_retime_s",
    "retime_s",
]  # fmt: skip

ROUND_S = 0.5
"""Seconds of a round apart from its trials: evolution, scoring, training (measured: 0.2 to
0.8)."""
TRIAL_S = 0.05
"""Seconds of a trial: its build (workers build in parallel), its check and its timing."""
FIRST_X = 2.0
"""How many times longer a first round takes: it derives sketches and computes a reference."""
RETIME_S = 0.4
"""Planned seconds for re-timing one task's finalists, apart from their calls (measured: 0.2 to
0.5)."""
USUAL_ROUND = 16
"""Least trials of a round under a time limit, so that measuring takes most of its time."""


@dataclass
class _Seen:
    """Seconds that rounds took, and seconds they were expected to take."""

    took_s: float = 0.0
    expected_s: float = 0.0

    def scale(self, prior: float, doubt_s: float) -> float:
        """Actual over expected time; *prior* weighs as much as *doubt_s* seconds of rounds."""
        return (self.took_s + doubt_s * prior) / (self.expected_s + doubt_s)


@dataclass
class Pace:
    """Sizes of rounds under a budget.

    With a time limit, the first rounds of all tasks fit into ``first_share`` of the initial time:
    each has ``least`` trials, and the remaining ones are split in proportion to the tasks' parts of
    the objective.  Later rounds take a quarter of a task's even share of the time left, but are
    large enough that measuring dominates; no round is planned to exceed the time left.
    """

    budget: Budget
    tasks: int
    first_share: float = 0.4
    least: int = 2
    largest_first: int = 16
    usual: int = USUAL_ROUND
    _first: _Seen = field(default_factory=_Seen)
    _later: _Seen = field(default_factory=_Seen)
    _each: dict[int, _Seen] = field(default_factory=dict)

    def note(self, at: int, is_first: bool, trials: int, seconds: float) -> None:
        """Record that a round of task *at* with *trials* trials took *seconds*."""
        rounds = [self._first] if is_first else [self._later, self._each.setdefault(at, _Seen())]
        for seen in rounds:
            seen.took_s += seconds
            seen.expected_s += ROUND_S + trials * TRIAL_S

    def round_s(self, at: int, is_first: bool, trials: int) -> float:
        """Expected seconds of a round of task *at*."""
        return self._scale(at, is_first) * (ROUND_S + trials * TRIAL_S)

    def size(self, at: int, tasks: Sequence[Standing], left_s: float | None) -> int:
        """Trials of the next round of task *at*, with *left_s* seconds left to search."""
        limit = self.budget.round_size(self.tasks)
        if left_s is None:
            return limit
        is_first = tasks[at].rounds == 0
        wanted = (
            self._first_size(at, tasks, left_s) if is_first else self._usual_size(tasks, left_s)
        )
        fits = int((left_s / self._scale(at, is_first) - ROUND_S) / TRIAL_S)
        return max(1, min(limit, wanted, fits))

    def _first_size(self, at: int, tasks: Sequence[Standing], left_s: float) -> int:
        fresh = [task for task in tasks if task.alive and task.rounds == 0]
        spent_s = self._first.took_s
        time_s = self.first_share * (left_s + spent_s) - spent_s
        time_s = max(time_s, 0.0) / self._scale(at, True)
        spare = (time_s - ROUND_S * len(fresh)) / TRIAL_S - self.least * len(fresh)
        heaviness = sum(task.slope * task.least_s for task in fresh)
        own = tasks[at].slope * tasks[at].least_s
        share = own / heaviness if heaviness > 0 else 1 / len(fresh)
        return min(self.least + int(max(spare, 0.0) * share), self.largest_first)

    def _usual_size(self, tasks: Sequence[Standing], left_s: float) -> int:
        alive = sum(task.alive for task in tasks)
        trials = left_s / self._later.scale(1.0, 1.0) / (TRIAL_S + ROUND_S / self.usual)
        return max(self.usual, int(trials / alive / 4))

    def _scale(self, at: int, is_first: bool) -> float:
        if is_first:
            return self._first.scale(FIRST_X, 2.0)
        overall = self._later.scale(1.0, 1.0)
        return self._each.get(at, _Seen()).scale(overall, 1.0)


def retime_s(history: History) -> float:
    """Planned seconds for re-timing the finalists of one task."""
    if history.retimed:
        return 0.0
    return RETIME_S + interleaved_s([best.seconds for best in history.finalists], TimingPolicy())


def least_retime_s(history: History) -> float:
    """Seconds below which re-timing these finalists cannot end: a check, a first call, a sample."""
    return 3 * sum(best.seconds for best in history.finalists)
