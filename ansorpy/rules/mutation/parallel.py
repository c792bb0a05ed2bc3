"""Redraw the number of outer loops that run in parallel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.rules.annotation.extents import column_of
from ansorpy.rules.base import Mutation
from ansorpy.rules.mutation.choice import redraw_one
from ansorpy.schedule.space import Space, Table

__all__ = ["MutateParallel"]


@dataclass(frozen=True)
class MutateParallel(Mutation):
    """In each row, change one stage's number of fused parallel loops (TVM's MutateParallel)."""

    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        marks = [stage.parallel for stage in space.state.stages if stage.parallel is not None]
        found = [column_of(mark.count) for mark in marks]
        return redraw_one(space, table, [c for c in found if c], rng, differ=True)
