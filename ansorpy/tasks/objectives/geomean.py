"""The objective that gives every network's speed-up the same weight, however slow the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import ClassVar

from ansorpy.arrays import Floats
from ansorpy.tasks.objective import TunedNetwork, latency_gradient, latency_s
from ansorpy.tasks.progress import TaskProgress

__all__ = ["GeometricMean"]


@dataclass(frozen=True)
class GeometricMean:
    """The geometric mean of the networks' speed-ups over their baselines, negated.

    Weights are exponents.  Baselines only scale the value; they do not move trials between tasks.
    Paper: OSDI'20 §6.1, f3.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"baseline_s"})

    def value(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> float:
        logs = [
            network.weight * log((network.baseline_s or 1.0) / latency_s(network, tasks))
            for network in networks
            if latency_s(network, tasks) > 0
        ]
        return -exp(sum(logs) / sum(network.weight for network in networks))

    def gradient(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> Floats:
        scale = -self.value(networks, tasks) / sum(network.weight for network in networks)
        latencies = [latency_s(network, tasks) for network in networks]
        outer = [
            scale * network.weight / latency if latency > 0 else network.weight
            for network, latency in zip(networks, latencies, strict=True)
        ]
        return latency_gradient(networks, tasks, outer)
