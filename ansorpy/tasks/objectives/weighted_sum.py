"""The objective that adds up the latencies of all networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.arrays import Floats
from ansorpy.tasks.objective import TunedNetwork, latency_gradient, latency_s
from ansorpy.tasks.progress import TaskProgress

__all__ = ["WeightedSum"]


@dataclass(frozen=True)
class WeightedSum:
    """The sum of the networks' latencies, each multiplied by the network's weight.

    Paper: OSDI'20 §6.1, f1.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    def value(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> float:
        return sum(network.weight * latency_s(network, tasks) for network in networks)

    def gradient(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> Floats:
        return latency_gradient(networks, tasks, [network.weight for network in networks])
