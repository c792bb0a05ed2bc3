"""Numbers of rows."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.errors import ForeignFile
from ansorpy.schedule.row_numbers import RowNumbers


def test_rows_are_numbered(rng: np.random.Generator) -> None:
    rows = rng.permutation(np.unique(rng.integers(0, 5, size=(60, 4)), axis=0))
    numbers = RowNumbers(rows)
    assert numbers.of(rows).tolist() == list(range(len(rows)))
    others = rng.integers(-1, 7, size=(500, 4))
    known = {tuple(row): n for n, row in enumerate(rows.tolist())}
    assert numbers.of(others).tolist() == [known.get(tuple(row), -1) for row in others.tolist()]


def test_too_many_values_to_number() -> None:
    with pytest.raises(ForeignFile, match="too many combinations"):
        RowNumbers(np.tile(np.arange(40)[:, None], (1, 12)))
