"""Redraw one of a row's plain choices; shared by several mutations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ansorpy.schedule.decisions import OneOf
from ansorpy.schedule.space import Space, Table

__all__ = ["redraw_one"]


def redraw_one(
    space: Space, table: Table, columns: Sequence[str], rng: np.random.Generator, *, differ: bool
) -> Table:
    """*table* with one of *columns* in each row set to a random value of its domain.

    With *differ*, the value always changes, unless the domain has no other value.
    """
    if not columns or not len(table):
        return table
    mutated = table.copy()
    picked = rng.integers(len(columns), size=len(table))
    domains = {d.name: d.domain for d in space.decisions}
    for number, name in enumerate(columns):
        domain, at = domains[name], space.columns.index(name)
        assert isinstance(domain, OneOf), name
        rows = np.flatnonzero(picked == number)
        values = np.asarray(domain.values, dtype=np.int64)
        if differ and len(values) > 1:
            present = np.argmax(values == mutated[rows, at][:, None], axis=1)
            shift = rng.integers(1, len(values), size=len(rows))
            mutated[rows, at] = values[(present + shift) % len(values)]
        else:
            mutated[rows, at] = values[rng.integers(len(values), size=len(rows))]
    return mutated
