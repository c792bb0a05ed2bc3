"""The interface of transfer sources, which decide what a search reuses from earlier trials."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ansorpy.cost.protocol import CostModel
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.search.population import Candidate
from ansorpy.search.strategy import Context

__all__ = ["Preceding", "TransferSource"]


class TransferSource(Protocol):
    """Decides whose records a search learns from, and what it measures first.

    Earlier trials of the task always count and are never measured again.
    """

    @property
    @abstractmethod
    def own(self) -> bool:
        """Whether strategy and model learn from the task's own earlier trials."""

    @property
    @abstractmethod
    def others(self) -> bool:
        """Whether the model learns from all earlier trials on this machine."""

    @abstractmethod
    def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
        """Candidates to measure before any other, the most promising first.

        *trials* are those that existed when the run began, and those it learned of since.
        """


@runtime_checkable
class Preceding(Protocol):
    """A transfer source that sees the model before it learns from earlier trials."""

    def begin(self, model: CostModel) -> None:
        """Prepare *model*, which several searches may share: called once for each."""
