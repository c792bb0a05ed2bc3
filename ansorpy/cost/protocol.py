"""What search asks of a cost model."""

from __future__ import annotations

from typing import Protocol

from ansorpy.cost.view import Floats
from ansorpy.ir.task import Task
from ansorpy.schedule.nest import Nest

__all__ = ["CostModel"]


class CostModel(Protocol):
    """Ranks programs of one task; scores of different tasks are not comparable."""

    def predict(self, task: Task, nest: Nest, rows: int) -> Floats:
        """Score of each of *rows* candidates, higher is faster; finite."""

    def learn(self, task: Task, nest: Nest, seconds: Floats) -> None:
        """Remember measured candidates, one a row of *nest*; infinite seconds are failures."""

    def refit(self) -> None:
        """Train on everything learnt so far."""
