"""Rows as points of the unit cube: by column, the rank of its value, scaled to 0..1."""

from __future__ import annotations

import numpy as np

from ansorpy.arrays import Floats
from ansorpy.schedule.space import Space, Table

__all__ = ["decoded", "positions"]


def positions(space: Space, table: Table) -> Floats:
    """``points[row, column]`` of the rows of *table*; a column with one value is 0."""
    found = np.empty(table.shape)
    for decision in space.decisions:
        columns = space.slices[decision.name]
        found[:, columns] = _ranks(decision.domain.rows, table[:, columns])
    return found


def decoded(space: Space, points: Floats) -> Table:
    """The row nearest to each point, decision by decision; constraints are not applied."""
    table = np.empty(points.shape, dtype=np.int64)
    for decision in space.decisions:
        columns, rows = space.slices[decision.name], decision.domain.rows
        places = _ranks(rows, rows)
        distance = ((points[:, None, columns] - places) ** 2).sum(axis=2)
        table[:, columns] = rows[distance.argmin(axis=1)]
    return table


def _ranks(domain: Table, part: Table) -> Floats:
    """By column, the rank of each value among those of *domain*, scaled to 0..1."""
    found = np.empty(part.shape)
    for number, column in enumerate(domain.T):
        values = np.unique(column)
        found[:, number] = np.searchsorted(values, part[:, number]) / max(len(values) - 1, 1)
    return found
