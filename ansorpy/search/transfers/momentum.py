"""The transfer source that keeps a network near what it learned from other tasks and machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.neural.teacher import Teacher
from ansorpy.cost.protocol import CostModel
from ansorpy.errors import UsageError
from ansorpy.measure.records.known_trials import KnownTrials
from ansorpy.search.population import Candidate
from ansorpy.search.strategy import Context

__all__ = ["Momentum"]


@dataclass(frozen=True)
class Momentum:
    """Trains a network from a slowly moving teacher, which it begins as (MoA-Pruner).

    The teacher is what was loaded, or learned from earlier trials of other tasks
    (:class:`~ansorpy.cost.neural.teacher.Teacher`).
    """

    momentum: float = 0.99
    every: int = 4
    own: ClassVar[bool] = True
    others: ClassVar[bool] = True

    def begin(self, model: CostModel) -> None:
        """From now on the model has a teacher.

        Raises:
            UsageError: The model is no network.
        """
        if not isinstance(model, NetworkModel):
            raise UsageError(
                "the transfer source momentum moves the weights of a network, which the cost model "
                "does not have",
                hint="choose a network too, such as the cost model pruner",
            )
        if model.teacher is None:
            model.teacher = Teacher(self.momentum, self.every, model.weights())

    def first(self, context: Context, trials: KnownTrials) -> Sequence[Candidate]:
        return ()
