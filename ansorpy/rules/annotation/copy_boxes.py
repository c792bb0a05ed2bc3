"""Let the copy engine of the GPU fill the tiles that warpgroup instructions read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.rules.annotation.extents import column_of, set_column
from ansorpy.rules.base import AnnotationRule
from ansorpy.schedule.boxes import is_box
from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.state import State
from ansorpy.target import Target

__all__ = ["CopyBoxes"]

FIRST_WITH_BOXES = 90
"""The first architecture with such copies (PTX ISA, ``cp.async.bulk.tensor``)."""


@dataclass(frozen=True)
class CopyBoxes(AnnotationRule):
    """Open whether one thread has a swizzled tile copied, instead of all threads copying it.

    Measured on an H200, float16 products of 4096 in blocks of 128 x 256: 197 us, and 252 us if
    threads copy.  Pairs of blocks that share copies, which pass their barriers together, take
    295 us, so sharing is left to schedules written by hand.
    Source: CUTLASS's kernels for TMA and wgmma.  Differs: Ansor has no such copies; one thread
    starts those of the next tile after the barrier that frees it, and no warps are set apart.

    Args:
        choices: 0 (all threads copy), 1, and larger numbers of blocks that share copies.
        alike: The fraction of sampled rows in which all tiles are copied so, and in the same way.
    """

    choices: tuple[int, ...] = (0, 1)
    alike: float = 0.75

    def declare(self, space: Space, target: Target) -> Space:
        state = space.state
        if target.capability >= FIRST_WITH_BOXES:
            for name in _tiles(state):
                state = state.bulk(name, OneOf(self.choices))
        return Space(state, space.constraints)

    def sample(self, space: Space, table: Table, target: Target, rng: np.random.Generator) -> Table:
        state = space.state
        columns = [column_of(state.stage(name).bulk) for name in _tiles(state)]
        if not any(columns):
            return table
        wanted = rng.choice([n for n in self.choices if n], len(table))
        chosen = rng.random(len(table)) < self.alike
        for column in filter(None, columns):
            drawn = table[:, space.columns.index(column)]
            table = set_column(space, table, column, np.where(chosen, wanted, drawn))
        return table


def _tiles(state: State) -> list[str]:
    return [
        s.name for s in state.stages if not s.inlined and not s.is_placeholder and is_box(state, s)
    ]
