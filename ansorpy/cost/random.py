"""A cost model of random scores, which shows what a search achieves without a model."""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import StaticModel
from ansorpy.ir.task import Task

__all__ = ["RandomModel"]


class RandomModel(StaticModel):
    """Gives every candidate a random score, as a baseline for the other models.

    Scores come from one stream: the same calls in the same order give the same scores.
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def predict(self, task: Task, programs: Programs) -> Floats:
        """A random number in 0..1 for each program."""
        return self._rng.random(len(programs))
