"""Loop extents of a stage as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ansorpy.schedule.bounds import Bounds
from ansorpy.schedule.size import as_array
from ansorpy.schedule.space import Space, Table

__all__ = ["column_of", "loop_extents", "set_column"]

Ints = npt.NDArray[np.int64]


def loop_extents(space: Space, table: Table, stage: str, iters: Sequence[str]) -> Ints:
    """Extent of each loop in each row, ``[row, loop]``; loops of the box the stage computes."""
    extents = Bounds(space.state, space.values(table)).extents(stage)
    columns = [as_array(extents[name], len(table)) for name in iters]
    return np.stack(columns, axis=1) if columns else np.ones((len(table), 0), dtype=np.int64)


def column_of(count: tuple[int | str, ...]) -> str | None:
    """The one open column of a mark's count, None when it is a number."""
    names = [factor for factor in count if isinstance(factor, str)]
    return names[0] if names else None


def set_column(space: Space, table: Table, column: str, values: Ints) -> Table:
    """*table* with one column replaced."""
    changed = table.copy()
    changed[:, space.columns.index(column)] = values
    return changed
