"""The state of one task of a run, as schedulers and objectives see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

__all__ = ["TaskProgress"]


@dataclass(frozen=True)
class TaskProgress:
    """The state of a task.

    Args:
        best_after: Best seconds after each of its rounds (infinite: no correct program yet), those
            of previous runs taken together as the first.
        trials_after: Total trials spent after each of them.
        flops: Arithmetic operations of the task.
        alive: Whether more rounds are possible.
        since_gain: Trials since its best time fell noticeably.
        class_key: Tasks with the same non-empty key differ only in shapes, so similar throughput
            can be expected of them.
        least_s: Roofline bound on the seconds of its programs.
        cost: Time that its trials take, relative to the trials of other tasks.
        gradient: Change of the run's objective per second of this task.
        share: Planned fraction of the run's trials, from 0 to 1.
        resting: Whether it is not alive only because it stopped improving.
        earlier: Trials of previous runs.
    """

    best_after: Sequence[float]
    trials_after: Sequence[int]
    flops: float
    alive: bool
    since_gain: int = 0
    class_key: str = ""
    least_s: float = 0.0
    cost: float = 1.0
    gradient: float = 1.0
    share: float = 0.0
    resting: bool = False
    earlier: int = 0

    @property
    def rounds(self) -> int:
        """Number of rounds the task has had in this run."""
        return len(self.best_after) - bool(self.earlier)

    @property
    def trials(self) -> int:
        """Number of trials it has spent."""
        return self.trials_after[-1] if self.trials_after else 0

    @property
    def best_s(self) -> float:
        """Seconds of its fastest correct program; infinite without one."""
        return self.best_after[-1] if self.best_after else float("inf")

    @property
    def objective_s(self) -> float:
        """Its best seconds, weighted as in the objective; 0 without a correct program."""
        return self.gradient * self.best_s if isfinite(self.best_s) else 0.0

    @property
    def headroom(self) -> float:
        """Fraction of its best time above its roofline: 0 at the roofline, 1 without a program."""
        return max(1.0 - self.least_s / self.best_s, 0.0) if self.best_s else 0.0
