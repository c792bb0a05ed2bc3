"""A campaign: cases numbered from 0, each of which is drawn, run and checked by one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Campaign", "Failure", "Outcome", "run_case"]


@dataclass(frozen=True)
class Campaign:
    """A kind of random test.

    Attributes:
        about: What one case does, for ``--help``.
        case: Runs one case.  It gets a generator that depends on the campaign's seed and the case's
            number only, and that number; it returns the kind of case, a word that is counted, and
            raises any exception if the case fails.
        size: Number of all cases if there is an end to them (an exhaustive campaign).
        short: Number of cases that ``make test`` runs.
        limit_s: Seconds after which a case counts as hanging.
    """

    about: str
    case: Callable[[np.random.Generator, int], str]
    size: int | None = None
    short: int = 3
    limit_s: float = 120.0


@dataclass(frozen=True)
class Failure:
    """A case that failed: its number, and what was seen."""

    number: int
    seen: str


@dataclass
class Outcome:
    """What a campaign found."""

    campaign: str
    seed: int
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """Number of cases that ran."""
        return self.kinds.total() + len(self.failures)


def run_case(campaign: Campaign, seed: int, number: int) -> str:
    """Run case *number* here; returns its kind, or raises what it raised."""
    return campaign.case(np.random.default_rng([seed, number]), number)
