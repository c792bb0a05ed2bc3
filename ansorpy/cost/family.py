"""One cost model for each family of similar tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ansorpy.arrays import Floats
from ansorpy.cost.boosted import BoostedTrees
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel, Uncertain, predictions
from ansorpy.ir.analysis.similarity import anchor_name
from ansorpy.ir.task import Task
from ansorpy.measure.records.samples import Samples

__all__ = ["FAMILIES", "FamilyKind", "FamilyModel"]

FamilyKind = Literal["anchor", "class", "individual"]

FAMILIES: Mapping[FamilyKind, Callable[[Task], str]] = {
    "anchor": lambda task: anchor_name(task.dag),
    "class": lambda task: task.class_key,
    "individual": lambda task: task.key,
}
"""The family of a task, by kind: tasks with the same costliest operator, those of one class (the
same structure whatever the shapes, FamilySeer's "hash"), or each task alone."""


@dataclass
class FamilyModel:
    """Trains one model for each family of similar tasks, so families do not mislead each other.

    Paper: FamilySeer (Zhang et al., arXiv 2201.00194).  Source: github buaa-hipo/familyseer_AE.
    Differs: a family's model ranks as it does alone until it has enough programs, by default by the
    analytic estimate, instead of at random for the first batch of each member.  The anchor is found
    by structure (:func:`~ansorpy.ir.analysis.similarity.anchor_name`), as definitions have no
    operator names.  Of earlier runs, only trials of this run's tasks are learned.

    Args:
        factory: Makes the model of a family.
        by: What makes tasks a family (:data:`FAMILIES`).
    """

    factory: Callable[[], CostModel] = BoostedTrees
    by: FamilyKind = "anchor"
    _models: dict[str, CostModel] = field(default_factory=dict, repr=False)

    def model_of(self, task: Task) -> CostModel:
        """The model of *task*'s family."""
        key = FAMILIES[self.by](task)
        if key not in self._models:
            self._models[key] = self.factory()
        return self._models[key]

    def predict(self, task: Task, programs: Programs) -> Floats:
        """The scores by the family's model."""
        return self.model_of(task).predict(task, programs)

    def predict_all(self, task: Task, tables: Sequence[Programs]) -> list[Floats]:
        """The scores of several tables by the family's model."""
        return predictions(self.model_of(task), task, tables)

    def deviations(self, task: Task, programs: Programs) -> Floats | None:
        """The deviations by the family's model; None if it does not know them."""
        model = self.model_of(task)
        return model.deviations(task, programs) if isinstance(model, Uncertain) else None

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> Samples | None:
        """Teach the family's model."""
        return self.model_of(task).learn(task, programs, seconds)

    def refit(self) -> None:
        """Train every family's model."""
        for model in self._models.values():
            model.refit()
