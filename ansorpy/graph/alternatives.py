"""Regions of a network that can be cut into kernels in several ways.

Passes name the alternatives, the task scheduler divides trials between them, their times decide
which one is taken, and the report shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Generic, TypeVar

__all__ = ["DOUBT", "Alternative", "Alternatives"]

DOUBT = 0.95
"""Another alternative replaces the first only if it takes less than this times its time.

Predicted times are wrong (docs/results/networks.md): for six attentions the model always identified
the faster one; its error in the ratio of their times was at most 5 %, except once, when it was
18 %. Measured ones are those of kernels that were each timed alone.
"""

K = TypeVar("K")
L = TypeVar("L")


@dataclass(frozen=True)
class Alternative(Generic[K]):
    """One way to compute a region.

    Args:
        answers: Question of a pass -> answer, in the order in which passes ask.  It has only the
            questions that are still asked after the answers before them.
        calls: How often it calls each task, beyond the calls that all alternatives make.
        seconds: Total time of these calls, measured or predicted; None: not known.
    """

    answers: Mapping[str, str]
    calls: Mapping[K, float]
    seconds: float | None = None

    @property
    def name(self) -> str:
        """The answers, separated by commas."""
        return ", ".join(self.answers.values())


@dataclass(frozen=True)
class Alternatives(Generic[K]):
    """The alternatives for one region of a network; the first is the default.

    Tasks are named by ``K``: a workload's key, a task's key, or a task's number in a run.
    """

    options: tuple[Alternative[K], ...]

    @property
    def name(self) -> str:
        """The questions, separated by commas."""
        return ", ".join(dict.fromkeys(q for option in self.options for q in option.answers))

    @property
    def most_calls(self) -> dict[K, float]:
        """How often each task is called by the alternative that calls it most."""
        most: dict[K, float] = {}
        for option in self.options:
            for task, calls in option.calls.items():
                most[task] = max(most.get(task, 0), calls)
        return most

    def spread(self, spread: Callable[[Mapping[K, float]], Mapping[L, float]]) -> Alternatives[L]:
        """The same alternatives, whose calls by task become those that *spread* makes of them."""
        return Alternatives(
            tuple(
                Alternative(option.answers, spread(option.calls), option.seconds)
                for option in self.options
            )
        )

    def timed(self, seconds: Mapping[K, float | None]) -> Alternatives[K]:
        """The same alternatives, with times that are the sums of their calls' times.

        *seconds* has the time of one call of each task.  The time of an alternative is known if
        those of all its tasks are: neither None nor infinite.
        """
        return Alternatives(
            tuple(
                replace(option, seconds=_total_s(option.calls, seconds)) for option in self.options
            )
        )

    @property
    def is_timed(self) -> bool:
        """True when the time of some alternative is known."""
        return any(option.seconds is not None for option in self.options)

    @property
    def fastest(self) -> int:
        """Index of the alternative to take: the first, unless another is clearly faster.

        It is also taken if no time is known, and is not if only its time is unknown.
        """
        known = [(option.seconds, n) for n, option in enumerate(self.options)
                 if option.seconds is not None]  # fmt: skip
        best_s, best = min(known, default=(0.0, 0))
        first_s = self.options[0].seconds
        return best if first_s is None or best_s < DOUBT * first_s else 0


def _total_s(calls: Mapping[K, float], seconds: Mapping[K, float | None]) -> float | None:
    total = 0.0
    for task, count in calls.items():
        each = seconds[task]
        if each is None or not isfinite(each):
            return None
        total += count * each
    return total
