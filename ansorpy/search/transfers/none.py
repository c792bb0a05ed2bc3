"""The transfer source that reuses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.search.population import Candidate
from ansorpy.search.strategy import Context

__all__ = ["NoTransfer"]


@dataclass(frozen=True)
class NoTransfer:
    """Starts as if nothing had been measured."""

    own: ClassVar[bool] = False
    others: ClassVar[bool] = False

    def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
        return ()
