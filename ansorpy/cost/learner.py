"""What learned models share: training samples of programs, stored with their trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ansorpy.cost.analytic.model import PRIOR_VERSION, AnalyticModel
from ansorpy.cost.dataset import Dataset
from ansorpy.cost.features import FEATURE_NAMES, FEATURE_VERSION, extract_all
from ansorpy.cost.nest_view import Floats, LeafView, view_nest
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.measure.records.samples import Samples

__all__ = ["SAMPLE_VERSION", "SampleLearner", "per_statement", "statement_features"]

SAMPLE_VERSION = f"{FEATURE_VERSION}-{PRIOR_VERSION}"
"""Version of the training samples: the features, and the analytic estimate that models correct."""


class SampleLearner:
    """Collects the features and the analytic estimates of measured programs, to train on.

    ``data`` holds all programs, those of other tasks and of earlier runs included.
    """

    def __init__(self, prior: AnalyticModel | None = None) -> None:
        self.prior = prior or AnalyticModel()
        self.data = Dataset()
        self._own: set[str] = set()

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> Samples:
        """Remember measured programs of *task*; infinite seconds mean that one failed."""
        samples = self.samples(task, programs, seconds)
        self.take(task.key, samples)
        return samples

    def take(self, task_key: str, samples: Samples) -> None:
        """Remember samples made by :meth:`samples` as this model's own."""
        self.recall({task_key: samples})
        self._own.add(task_key)

    def samples(self, task: Task, programs: Programs, seconds: Floats) -> Samples:
        """The training samples of these programs."""
        views = view_nest(programs.nest, len(programs))
        features = list(statement_features(views))
        return Samples(SAMPLE_VERSION, features, self.prior.seconds(task, views), seconds)

    @property
    def remembers(self) -> tuple[str, int]:
        """Version of the samples and width of their features."""
        return SAMPLE_VERSION, len(FEATURE_NAMES)

    def recall(self, earlier: Mapping[str, Samples]) -> None:
        """Remember programs measured in earlier runs, by task key; training uses them."""
        for task_key, samples in earlier.items():
            self.data.add(task_key, samples.features, samples.prior_s, samples.seconds)

    @property
    def own_programs(self) -> int:
        """Number of programs of the tasks learned in this run, including those of earlier runs."""
        return sum(len(self.data.tasks[key].seconds) for key in self._own)


def statement_features(views: Sequence[LeafView]) -> Floats:
    """Features of every program's statements: ``[programs, statements, features]``."""
    parts = zip(views, per_statement(extract_all(views), views), strict=True)
    return np.stack([view.spread(part) for view, part in parts], axis=1)


def per_statement(values: Floats, views: Sequence[LeafView]) -> list[Floats]:
    """Split the concatenated *values* of all statements into one array per statement."""
    return np.split(values, np.cumsum([view.rows for view in views])[:-1])
