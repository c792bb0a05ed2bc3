"""The analytic cost model: seconds of a program from its loops and the machine alone."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.hardware import hardware_of
from ansorpy.cost.nest_view import LeafView, view_nest
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import StaticModel
from ansorpy.ir.task import Task

__all__ = ["PRIOR_VERSION", "AnalyticModel"]

PRIOR_VERSION = 9
"""Increase it whenever any program's predicted time changes, or what it consists of, because
trained trees correct one version of this model.  ``tests/cost/test_versions.py`` fails if not."""


class AnalyticModel(StaticModel):
    """Predicts time by formulas on the loops and the machine; learns nothing from measurements."""

    def seconds(self, task: Task, views: Sequence[LeafView]) -> Floats:
        """Predicted seconds of each candidate."""
        return hardware_of(task.target).seconds(task, views)

    def explained(self, task: Task, views: Sequence[LeafView]) -> tuple[Floats, list[Floats]]:
        """The same, and shares of what it consists of (:class:`.HardwareModel`)."""
        return hardware_of(task.target).explained(task, views)

    def predict(self, task: Task, programs: Programs) -> Floats:
        """Score of each program: programs per second."""
        score: Floats = 1.0 / self.seconds(task, view_nest(programs.nest, len(programs)))
        return score
