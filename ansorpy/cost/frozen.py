"""A cost model that learns nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.cost.nest_view import Floats
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, predictions
from ansorpy.ir.task import Task

__all__ = ["Frozen"]


@dataclass(frozen=True)
class Frozen:
    """Scores as ``model`` does, and passes no measurement on to it."""

    model: CostModel

    def predict(self, task: Task, programs: Programs) -> Floats:
        """The model's scores."""
        return self.model.predict(task, programs)

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        """The model's scores of several tables."""
        return predictions(self.model, task, tables)

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> None:
        """Nothing."""

    def refit(self) -> None:
        """Nothing."""
