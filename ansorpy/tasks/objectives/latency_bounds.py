"""The objective that gives no more trials to networks that are fast enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.arrays import Floats
from ansorpy.tasks.objective import TunedNetwork, is_known, latency_gradient, latency_s
from ansorpy.tasks.progress import TaskProgress

__all__ = ["LatencyBounds"]


@dataclass(frozen=True)
class LatencyBounds:
    """The weighted sum of latencies, each clipped from below at its bound.

    Tuning is done when all bounds are met.

    A network without a bound counts in full.  Paper: OSDI'20 §6.1, f2.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"bound_s"})

    def value(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> float:
        return sum(g.weight * max(latency_s(g, tasks), g.bound_s or 0.0) for g in networks)

    def gradient(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> Floats:
        outer = [0.0 if _is_within(network, tasks) else network.weight for network in networks]
        return latency_gradient(networks, tasks, outer)


def _is_within(network: TunedNetwork, tasks: Sequence[TaskProgress]) -> bool:
    """Whether every task of the network has a program and their total meets the bound."""
    if network.bound_s is None:
        return False
    return is_known(network, tasks) and latency_s(network, tasks) <= network.bound_s
