"""Redraw the number of inner loops that become a vector, or of lanes of a reduction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.rules.annotation.extents import column_of
from ansorpy.rules.base import Mutation
from ansorpy.rules.mutation.choice import redraw_one
from ansorpy.schedule.space import Space, Table

__all__ = ["MutateVectorize"]


@dataclass(frozen=True)
class MutateVectorize(Mutation):
    """In each row, change one stage's number of vector loops, or one reduction's lanes.

    Differs: TVM never changes these, because they are part of its program structure; here they are
    ordinary columns.
    """

    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        marks = [stage.vectorize for stage in space.state.stages if stage.vectorize is not None]
        found = [column_of(mark.count) for mark in marks]
        lanes = {f"{stage.name}.lanes" for stage in space.state.stages if stage.lanes is not None}
        found += [decision.name for decision in space.decisions if decision.name in lanes]
        return redraw_one(space, table, [c for c in found if c], rng, differ=True)
