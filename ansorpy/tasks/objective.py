"""Interface of tuning objectives: functions of the latencies of one or several networks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.errors import UsageError
from ansorpy.graph.alternatives import Alternatives
from ansorpy.tasks.alternatives import claimed_calls, leader_calls, timed
from ansorpy.tasks.progress import TaskProgress

__all__ = [
    "Objective", "Totals", "TunedNetwork", "is_known", "latency_gradient", "latency_s",
    "misses", "totals", "with_gradients",
]  # fmt: skip


@dataclass(frozen=True)
class TunedNetwork:
    """One network, and the latency it should achieve.

    Args:
        calls: How often it calls each task of the run, in their order; 0 for tasks of other
            networks and for those that only some alternatives of ``regions`` call.
        weight: Its importance relative to the other networks.
        bound_s: Latency that is fast enough; ``None``: no bound.
        baseline_s: Latency that its speed-up refers to; ``None``: one second.
        name: Its name in messages.
        regions: Its regions that can be cut in several ways, tasks named by their numbers.

    Raises:
        UsageError: A number is not positive.
    """

    calls: tuple[float, ...]
    weight: float = 1.0
    bound_s: float | None = None
    baseline_s: float | None = None
    name: str = ""
    regions: tuple[Alternatives[int], ...] = ()

    def __post_init__(self) -> None:
        for what in ("weight", "bound_s", "baseline_s"):
            value = getattr(self, what)
            if value is not None and value <= 0:
                raise UsageError(f"{what} of {self.name or 'a network'} must be positive: {value}")


class Objective(Protocol):
    """A function to minimize, and its derivatives.

    ``reads`` names the fields of a :class:`TunedNetwork` that it uses besides calls and weights.
    """

    @property
    @abstractmethod
    def reads(self) -> frozenset[str]:
        """The fields among ``bound_s`` and ``baseline_s`` that affect the objective."""

    @abstractmethod
    def value(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> float:
        """Its current value; tasks without a correct program are left out."""

    @abstractmethod
    def gradient(self, networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> Floats:
        """Its change per second of each task; never negative."""


def with_gradients(
    tasks: Sequence[TaskProgress], objective: Objective, networks: Sequence[TunedNetwork]
) -> list[TaskProgress]:
    """*tasks* with the objective's change per second of each."""
    gradient = objective.gradient(networks, tasks)
    return [replace(t, gradient=float(g)) for t, g in zip(tasks, gradient, strict=True)]


def latency_s(network: TunedNetwork, tasks: Sequence[TaskProgress]) -> float:
    """Total seconds of the network's calls; tasks without a correct program are left out.

    In each region, the fastest alternative counts.
    """
    return float(_calls_now(network, tasks) @ _known_s(tasks))


@dataclass(frozen=True)
class Totals:
    """What the networks of a run take, weighted.

    Args:
        best_s: Seconds with the fastest program of each task; None while a network cannot run.
        untuned_s: Seconds with the first correct program of each task; None likewise.
        calls: Calls of each task, with regions cut in their fastest known ways.
    """

    best_s: float | None
    untuned_s: float | None
    calls: tuple[float, ...]


def totals(
    networks: Sequence[TunedNetwork],
    tasks: Sequence[TaskProgress],
    firsts: Sequence[float | None],
) -> Totals:
    """The totals of *networks*; *firsts* has the seconds of the first program of each task."""
    pairs = zip(tasks, firsts, strict=True)
    untuned = [replace(task, best_after=(first or float("inf"),)) for task, first in pairs]
    calls = sum(network.weight * _calls_now(network, tasks) for network in networks)
    return Totals(
        _total_s(networks, tasks), _total_s(networks, untuned), tuple(np.asarray(calls).tolist())
    )


def _total_s(networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress]) -> float | None:
    if not all(is_known(network, tasks) for network in networks):
        return None
    return sum(network.weight * latency_s(network, tasks) for network in networks)


def _calls_now(network: TunedNetwork, tasks: Sequence[TaskProgress]) -> Floats:
    """Calls of each task; in each region, those of the fastest alternative."""
    calls: Floats = np.array(network.calls, np.float64)
    return sum((leader_calls(region, tasks) for region in network.regions), calls)


def is_known(network: TunedNetwork, tasks: Sequence[TaskProgress]) -> bool:
    """Whether every task that the network has to call has a correct program."""
    pairs = zip(tasks, network.calls, strict=True)
    known = all(np.isfinite(task.best_s) for task, calls in pairs if calls)
    return known and all(timed(region, tasks).is_timed for region in network.regions)


def misses(networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress], at: int) -> bool:
    """Whether some network cannot run because task *at* has no correct program."""
    return any(
        network.calls[at] > 0
        or any(
            at in region.most_calls and not timed(region, tasks).is_timed
            for region in network.regions
        )
        for network in networks
    )


def latency_gradient(
    networks: Sequence[TunedNetwork], tasks: Sequence[TaskProgress], outer: Sequence[float]
) -> Floats:
    """Apply the chain rule; *outer* is the objective's change per second of each latency.

    Alternatives that are not the fastest but may still win count with a reduced weight.
    """
    claims = [
        sum(
            (claimed_calls(region, tasks) for region in network.regions),
            np.array(network.calls, np.float64),
        )
        for network in networks
    ]
    gradient: Floats = np.asarray(outer, dtype=np.float64) @ np.array(claims)
    return gradient


def _known_s(tasks: Sequence[TaskProgress]) -> Floats:
    return np.array([task.best_s if np.isfinite(task.best_s) else 0.0 for task in tasks])
