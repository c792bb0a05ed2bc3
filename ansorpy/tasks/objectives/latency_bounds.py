"""The objective that gives no more trials to networks that are fast enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.tasks.objective import Floats, Goal, is_known, latency_s, latency_slopes
from ansorpy.tasks.standing import Standing

__all__ = ["LatencyBounds"]


@dataclass(frozen=True)
class LatencyBounds:
    """The weighted sum of latencies, each at least its bound; done when all bounds are met.

    A network without a bound counts in full.  Paper: OSDI'20 §6.1, f2.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"bound_s"})

    def value(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> float:
        return sum(g.weight * max(latency_s(g, tasks), g.bound_s or 0.0) for g in goals)

    def slopes(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> Floats:
        outer = [0.0 if _is_within(goal, tasks) else goal.weight for goal in goals]
        return latency_slopes(goals, tasks, outer)


def _is_within(goal: Goal, tasks: Sequence[Standing]) -> bool:
    """True when every task of the network has a program and their total meets its bound."""
    if goal.bound_s is None:
        return False
    return is_known(goal, tasks) and latency_s(goal, tasks) <= goal.bound_s
