"""The interface of transfer sources, which decide what a search reuses from earlier trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ansorpy.cost.protocol import CostModel
from ansorpy.ir.task import Task
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.search.population import Candidate, SketchSource

__all__ = ["TransferContext", "TransferSource"]


@dataclass(frozen=True)
class TransferContext:
    """What a transfer source may use when the first round of a task begins.

    ``trials`` holds those that existed when the run began, and those it learned of since.
    """

    task: Task
    source: SketchSource
    model: CostModel
    trials: KnownTrials
    rng: np.random.Generator


class TransferSource(Protocol):
    """Decides whose records a search learns from, and what it measures first.

    Earlier trials of the task always count and are never measured again.
    """

    @property
    def own(self) -> bool:
        """Whether strategy and model learn from the task's own earlier trials."""

    @property
    def others(self) -> bool:
        """Whether the model learns from all earlier trials on this machine."""

    def first(self, context: TransferContext) -> Sequence[Candidate]:
        """Candidates to measure before any other, the most promising first."""
