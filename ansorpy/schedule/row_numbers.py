"""Numbers of the rows of a table, and numbers that stand for rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ansorpy.errors import ForeignFile

__all__ = ["RowNumbers", "codes_of"]

Ints = npt.NDArray[np.int64]


def codes_of(rows: Ints) -> Ints | None:
    """A number for each of *rows*: equal, less or greater as the rows are, column by column.

    None if the columns' ranges have too many combinations.
    """
    code = np.zeros(len(rows), dtype=np.int64)
    if not len(rows):
        return code
    span = 1
    for least, most, column in zip(
        rows.min(axis=0).tolist(), rows.max(axis=0).tolist(), rows.T, strict=True
    ):
        span *= most - least + 1
        if span >= 2**63:
            return None
        code = code * (most - least + 1) + (column - least)
    return code


class RowNumbers:
    """Looks up the numbers of many rows of a table at once.

    Raises:
        ForeignFile: The combinations of the columns' values are too many to number; only rows
            that were read from a file can have so many.
    """

    def __init__(self, rows: Ints) -> None:
        self._values = [np.unique(column) for column in rows.T]
        sizes = [len(values) for values in self._values]
        if np.prod(np.asarray(sizes, dtype=np.float64)) >= 2.0**62:
            raise ForeignFile("the rows have too many combinations of values to number them")
        self._weights = np.cumprod([1, *sizes[:-1]]).astype(np.int64)
        keys = self._keys(rows)[0]
        self._order = np.argsort(keys, kind="stable")
        self._keys_sorted = keys[self._order]

    def of(self, table: Ints) -> Ints:
        """The number of each row of *table*, -1 for missing ones."""
        keys, known = self._keys(table)
        at = np.minimum(np.searchsorted(self._keys_sorted, keys), len(self._order) - 1)
        found = known & (self._keys_sorted[at] == keys)
        return np.where(found, self._order[at], -1)

    def _keys(self, table: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """One key per row, and whether all of the row's values occur in the grid."""
        keys = np.zeros(len(table), dtype=np.int64)
        known = np.ones(len(table), dtype=np.bool_)
        for column, values, weight in zip(table.T, self._values, self._weights, strict=True):
            at = np.minimum(np.searchsorted(values, column), len(values) - 1)
            known &= values[at] == column
            keys += weight * at
        return keys, known
