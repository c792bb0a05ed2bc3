"""The analytic cost model: seconds of a program from its loops and the machine alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.cost.analytic.hardware import HardwareModel, hardware_of
from ansorpy.cost.nest_view import Floats, LeafView, view_nest
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task

__all__ = ["PRIOR_VERSION", "AnalyticModel"]

PRIOR_VERSION = 6
"""Increase it whenever any program's predicted time changes, because trained trees correct one
version of this model.  ``tests/cost/test_versions.py`` fails otherwise."""


@dataclass(frozen=True)
class AnalyticModel:
    """Predicts time by formulas on the loops and the machine; learns nothing from measurements.

    Args:
        hardware: Replaces the hardware model of the task's backend.
    """

    hardware: HardwareModel | None = None

    def seconds(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Predicted seconds of each candidate."""
        return (self.hardware or hardware_of(task.target)).seconds(task, views)

    def predict(self, task: Task, programs: Programs) -> Floats:
        """Score of each program: programs per second."""
        score: Floats = 1.0 / self.seconds(task, view_nest(programs.nest, len(programs)))
        return score

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> None:
        """Nothing: this model has no parameters."""

    def refit(self) -> None:
        """Nothing: this model has no parameters."""
