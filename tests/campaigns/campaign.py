"""A campaign: cases numbered from 0, each of which is drawn, run and checked by one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

__all__ = ["Campaign", "Failure", "Outcome", "Tally", "Worst", "run_case"]


class Worst(NamedTuple):
    """The largest value of a measure, and where it was seen."""

    value: float
    where: str


@dataclass
class Tally:
    """What cases saw: how often each kind, and the largest of each measure."""

    kinds: Counter[str] = field(default_factory=Counter)
    worst: dict[str, Worst] = field(default_factory=dict)

    def note(self, measure: str, value: float, where: str) -> None:
        """Keep *value* if it is the largest of *measure* so far."""
        found = Worst(value, where)
        self.worst[measure] = max(found, self.worst.get(measure, found))

    def add(self, other: Tally) -> None:
        """Count what *other* counted, too."""
        self.kinds.update(other.kinds)
        for measure, found in other.worst.items():
            self.note(measure, *found)


@dataclass(frozen=True)
class Campaign:
    """A kind of random test.

    Attributes:
        about: What one case does, for ``--help``.
        case: Runs one case.  It gets a generator that depends on the campaign's seed and the case's
            number only, and that number; it returns the kind of case, a word that is counted, or a
            tally of several kinds and measures, and raises any exception if the case fails.
        size: Number of all cases if there is an end to them (an exhaustive campaign).
        short: Number of cases that ``make test`` runs.
        limit_s: Seconds after which a case counts as hanging.
        pinned: Whether each process has a core of its own, so that none waits for another's turn
            to measure.
    """

    about: str
    case: Callable[[np.random.Generator, int], str | Tally]
    size: int | None = None
    short: int = 3
    limit_s: float = 120.0
    pinned: bool = False


@dataclass(frozen=True)
class Failure:
    """A case that failed: its number, and what was seen."""

    number: int
    seen: str


@dataclass
class Outcome:
    """What a campaign found in a number of cases."""

    campaign: str
    seed: int
    cases: int = 0
    tally: Tally = field(default_factory=Tally)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0


def run_case(campaign: Campaign, seed: int, number: int) -> Tally:
    """Run case *number* here; returns what it saw, or raises what it raised."""
    found = campaign.case(np.random.default_rng([seed, number]), number)
    return found if isinstance(found, Tally) else Tally(Counter([found]))
