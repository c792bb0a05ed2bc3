"""The objective that weighs every network's speed-up alike, however slow the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

from ansorpy.tasks.objective import Floats, Goal, latency_s, latency_slopes
from ansorpy.tasks.standing import Standing

__all__ = ["GeometricMean"]


@dataclass(frozen=True)
class GeometricMean:
    """The geometric mean of the networks' speed-ups over their baselines, negated.

    Weights are exponents.  Baselines scale the value; they do not move trials between tasks.
    Paper: OSDI'20 §6.1, f3.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"baseline_s"})

    def value(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> float:
        logs = [
            goal.weight * log((goal.baseline_s or 1.0) / latency_s(goal, tasks))
            for goal in goals
            if latency_s(goal, tasks) > 0
        ]
        return -exp(sum(logs) / sum(goal.weight for goal in goals))

    def slopes(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> Floats:
        scale = -self.value(goals, tasks) / sum(goal.weight for goal in goals)
        latencies = [latency_s(goal, tasks) for goal in goals]
        outer = [
            scale * goal.weight / latency if latency > 0 else goal.weight
            for goal, latency in zip(goals, latencies, strict=True)
        ]
        return latency_slopes(goals, tasks, outer)
