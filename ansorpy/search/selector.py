"""The interface of selectors, which decide which candidates of a pool to measure."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import numpy as np

from ansorpy.errors import UsageError
from ansorpy.search.population import Candidate, Pool

__all__ = ["Selector", "deviation_of"]


class Selector(Protocol):
    """Picks candidates from a pool, never the same one twice."""

    @abstractmethod
    def pick(self, pool: Pool, n: int, rng: np.random.Generator) -> list[Candidate]:
        """At most *n* candidates."""


def deviation_of(candidate: Candidate, selector: str) -> float:
    """The deviation of *candidate*'s score, which *selector* needs.

    Raises:
        UsageError: The cost model does not know it.
    """
    if candidate.deviation is None:
        raise UsageError(
            f"the selector {selector} needs a cost model that knows the uncertainty of its scores",
            hint="use the cost model rf, or another selector",
        )
    return candidate.deviation
