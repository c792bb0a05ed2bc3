"""The objective that adds up the latencies of all networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.tasks.objective import Floats, Goal, latency_s, latency_slopes
from ansorpy.tasks.standing import Standing

__all__ = ["WeightedSum"]


@dataclass(frozen=True)
class WeightedSum:
    """The sum of the networks' latencies, each times its weight.

    Paper: OSDI'20 §6.1, f1.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    def value(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> float:
        return sum(goal.weight * latency_s(goal, tasks) for goal in goals)

    def slopes(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> Floats:
        return latency_slopes(goals, tasks, [goal.weight for goal in goals])
