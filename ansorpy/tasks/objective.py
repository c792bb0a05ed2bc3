"""What a tuning run makes small: a figure of the latencies of one or several networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ansorpy.errors import UsageError
from ansorpy.tasks.standing import Standing

__all__ = ["Floats", "Goal", "Objective", "latency_s", "latency_slopes"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Goal:
    """One network, and what is wanted of it.

    Args:
        calls: How often it calls each task of the run, in their order; 0 for another's tasks.
        weight: Its importance beside the other networks.
        bound_s: Latency that is fast enough; ``None``: there is none.
        baseline_s: Latency that its speed-up is counted from; ``None``: one second.
        name: For messages.

    Raises:
        UsageError: A figure that is not positive.
    """

    calls: tuple[float, ...]
    weight: float = 1.0
    bound_s: float | None = None
    baseline_s: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        for what in ("weight", "bound_s", "baseline_s"):
            value = getattr(self, what)
            if value is not None and value <= 0:
                raise UsageError(f"{what} of {self.name or 'a network'} must be positive: {value}")


class Objective(Protocol):
    """A figure to make small, and its derivative.

    ``reads`` names the figures of a :class:`Goal` it looks at beside calls and weights.
    """

    @property
    def reads(self) -> frozenset[str]:
        """Of ``bound_s`` and ``baseline_s`` those that make a difference to it."""

    def value(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> float:
        """The figure as things stand; tasks without a correct program are left out."""

    def slopes(self, goals: Sequence[Goal], tasks: Sequence[Standing]) -> Floats:
        """Change of the figure per second of each task; never negative."""


def latency_s(goal: Goal, tasks: Sequence[Standing]) -> float:
    """Seconds of the network's calls together; tasks without a correct program are left out."""
    return float(_calls([goal])[0] @ _known_s(tasks))


def latency_slopes(
    goals: Sequence[Goal], tasks: Sequence[Standing], outer: Sequence[float]
) -> Floats:
    """The chain rule: *outer* is the figure's change per second of each network's latency."""
    slopes: Floats = np.asarray(outer, dtype=np.float64) @ _calls(goals)
    return slopes


def _calls(goals: Sequence[Goal]) -> Floats:
    return np.array([goal.calls for goal in goals], dtype=np.float64)


def _known_s(tasks: Sequence[Standing]) -> Floats:
    return np.array([task.best_s if np.isfinite(task.best_s) else 0.0 for task in tasks])
