"""Redraw a kernel's choices other than tiles: vectors, padding, pipeline depth, threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.rules.annotation.extents import column_of
from ansorpy.rules.base import Mutation
from ansorpy.rules.mutation.choice import redraw_one
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space, Table

__all__ = ["MutateBlockChoice"]


@dataclass(frozen=True)
class MutateBlockChoice(Mutation):
    """In each row, change one plain choice that is not an unroll limit.

    Differs: unrolling is the only such choice in TVM's GPU programs.
    """

    def apply(self, space: Space, table: Table, rng: np.random.Generator) -> Table:
        unrolls = {column_of(stage.max_unroll) for stage in space.state.stages}
        found = [
            decision.name
            for decision in space.decisions
            if isinstance(decision.domain, OneOf) and decision.name not in unrolls
        ]
        return redraw_one(space, table, found, rng, differ=True)
