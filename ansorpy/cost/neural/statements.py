"""Networks that see a program as its statements, with the features that boosted trees see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.analytic.model import AnalyticModel
from ansorpy.cost.learner import COLUMNS, SAMPLE_VERSION, samples_of, statement_rows
from ansorpy.cost.nest_view import view_nest
from ansorpy.cost.neural.network import NetworkModel
from ansorpy.cost.programs import Programs
from ansorpy.ir.task import Task
from ansorpy.measure.records.samples import Samples

__all__ = ["StatementNetwork"]


@dataclass
class StatementNetwork(NetworkModel):
    """A network on a row of features a statement; before it is trained, the closed form scores.

    Its samples are those of boosted trees, so either learns from the other's trials.
    """

    @property
    def version(self) -> str:
        return SAMPLE_VERSION

    @property
    def width(self) -> int:
        return len(COLUMNS)

    def encode(self, task: Task, programs: Programs) -> Floats:
        return statement_rows(task, view_nest(programs.nest, len(programs)))[1]

    def untrained(self, task: Task, programs: Programs) -> Floats:
        """The analytic model's scores."""
        return AnalyticModel().predict(task, programs)

    def learn(self, task: Task, programs: Programs, seconds: Floats) -> Samples:
        """Remember measured programs of *task*."""
        samples = samples_of(task, programs, seconds)
        self.take(task.key, samples.features, samples.seconds)
        return samples

    @property
    def remembers(self) -> tuple[str, int]:
        """Version of the samples and width of their features."""
        return self.version, self.width

    def recall(self, earlier: Mapping[str, Samples]) -> None:
        """Remember programs measured in earlier runs, by task key; :meth:`refit` uses them."""
        narrow = {
            key: replace(samples, features=[part.astype(np.float32) for part in samples.features])
            for key, samples in earlier.items()
        }
        self.data.recall(narrow)
