"""A small space of matrix products with a made-up machine to time its programs."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.cost.programs import Programs
from ansorpy.cost.protocol import CostModel
from ansorpy.ir.task import Task
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space
from ansorpy.schedule.state import State
from tests.cost.tasks import matmul_task

__all__ = ["drawn", "learned", "seconds_of", "task_of"]

Model = TypeVar("Model", bound=CostModel)


def task_of(n: int = 64) -> Task:
    return matmul_task(n, 64, 64)


def drawn(task: Task, n: int, seed: int) -> Programs:
    state = State.initial(task.dag)
    state, (i0, i1) = state.split("C", "i", (OneOf((1, 2, 4, 8, 16)),))
    state, (j0, j1) = state.split("C", "j", (OneOf((4, 8, 16, 32)),))
    state, (k0, k1) = state.split("C", "k", (OneOf((1, 2, 4, 8)),))
    state = state.reorder("C", [i0, j0, k0, k1, i1, j1])
    state = state.pragma_unroll("C", OneOf((0, 16, 64))).vectorize("C", [j1])
    space = Space(state)
    return Programs(space, space.sample(n, np.random.default_rng(seed)))


def seconds_of(programs: Programs) -> Floats:
    """Tall tiles are fast and long inner sums are slow, unlike on any machine of the model."""
    i, j, k, unroll = programs.table.T
    seconds: Floats = 1e-3 * (1 + 16 / i) * (1 + 8 / j) * (1 + 0.4 * k) * (1 + 0.3 * (unroll == 0))
    return seconds


def learned(model: Model, seed: int = 1, n: int = 32) -> Model:
    """*model* after it learned *n* programs of one task."""
    programs = drawn(task_of(), n, seed)
    model.learn(task_of(), programs, seconds_of(programs))
    model.refit()
    return model
