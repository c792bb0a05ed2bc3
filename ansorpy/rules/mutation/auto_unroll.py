"""Redraw the unroll limit of a stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.rules.annotation.extents import column_of
from ansorpy.rules.base import Mutation
from ansorpy.rules.mutation.choice import redraw_one
from ansorpy.schedule.space import Space, Table

__all__ = ["MutateAutoUnroll"]


@dataclass(frozen=True)
class MutateAutoUnroll(Mutation):
    """In each row, draw one stage's unroll limit again; it may stay the same (TVM)."""

    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        found = [column_of(stage.max_unroll) for stage in space.state.stages]
        return redraw_one(space, table, [c for c in found if c], rng, differ=False)
