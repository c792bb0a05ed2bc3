"""The transfer source that resumes where the task's last run ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.search.population import Candidate
from ansorpy.search.strategy import Context

__all__ = ["HistoryBest"]


@dataclass(frozen=True)
class HistoryBest:
    """Resumes from the task's own earlier trials; ignores other tasks' records."""

    own: ClassVar[bool] = True
    others: ClassVar[bool] = False

    def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
        return ()
