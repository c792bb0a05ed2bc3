"""Loop extents of a stage as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorpy.arrays import Ints
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import Product, open_columns
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.tables.size import Size, as_array

__all__ = ["column_of", "loop_extents", "set_column"]


def loop_extents(space: Space, table: Table, stage: str, iters: Sequence[str]) -> Ints:
    """Extents ``[row, loop]`` of the stage's loops over the region it computes, per table row."""

    def sizes(bounds: Bounds) -> list[Size]:
        extents = bounds.extents(stage)
        return [extents[name] for name in iters]

    found = space.compute(("extents", stage, *iters), sizes, table)
    columns = [as_array(size, len(table)) for size in found]
    return np.stack(columns, axis=1) if columns else np.ones((len(table), 0), dtype=np.int64)


def column_of(count: Product) -> str | None:
    """The open column of an annotation's count; None if the count is a number."""
    return next(iter(open_columns(count)), None)


def set_column(space: Space, table: Table, column: str, values: Ints) -> Table:
    """*table* with one column replaced."""
    changed = table.copy()
    changed[:, space.columns.index(column)] = values
    return changed
