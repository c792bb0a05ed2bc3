"""The vector widths of copies into shared tiles; in sampled rows, they are mostly the widest."""

from __future__ import annotations

import numpy as np

from ansorpy.ir.loops import Scope
from ansorpy.rules.annotation.extents import column_of
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import OneOf, Product
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.tables.size import Size, as_array

__all__ = ["copy_width", "widen_copies"]

_WIDEST = 0.8
"""The fraction of rows that get the widest vectors; the others keep the width that was drawn."""


def copy_width(tile: Stage) -> Product:
    """Number of elements of *tile* that a thread copies at once."""
    inner = () if tile.vectorize is None else tile.vectorize.iters
    for relation in tile.relations:
        if isinstance(relation, SplitRelation) and relation.children[-1] in inner:
            return relation.factors[-1]
    return (1,)


def widen_copies(space: Space, table: Table, rng: np.random.Generator) -> Table:
    """*table* with the widest copy vectors that divide the rows of shared tiles, in most rows."""
    widths = {d.columns[0]: d.domain.values for d in space.decisions if isinstance(d.domain, OneOf)}
    table = table.copy()
    for tile in space.state.stages:
        column = column_of(copy_width(tile)) if tile.scope is Scope.SHARED else None
        if column is None or column not in widths:
            continue

        def row(bounds: Bounds, name: str = tile.name) -> list[Size]:
            return [bounds.region(name)[-1].extent]

        [extent] = space.compute(("row", tile.name), row, table)
        extents = as_array(extent, len(table))
        widest = np.ones(len(table), dtype=np.int64)
        for width in sorted(widths[column]):
            widest = np.where(extents % width == 0, width, widest)
        at = space.columns.index(column)
        chosen = rng.random(len(table)) < _WIDEST
        table[:, at] = np.where(chosen, widest, table[:, at])
    return table
