"""Draw the vector widths of copies into shared tiles for sampled rows: mostly the widest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ansorpy.rules.tiling.roundness import draw_round
from ansorpy.schedule.bounds.inference import Bounds
from ansorpy.schedule.decisions import Factors, OneOf
from ansorpy.schedule.space import Space, Table
from ansorpy.schedule.stage import SplitRelation, Stage
from ansorpy.schedule.tables.size import Size, as_array

__all__ = ["draw_reductions", "draw_splits", "row_length", "widen_copies"]

_WIDEST = 0.8
"""The fraction of rows that get the widest vectors; the others keep the width that was drawn."""


def row_length(bounds: Bounds, stage: Stage) -> Size:
    """Number of elements in a row of the tile that *stage* copies."""
    assert stage.attach is not None, stage.name
    level = bounds.state.stage(stage.attach.stage).index(stage.attach.iter)
    return bounds.region(stage.name, stage.attach.stage, level)[-1].extent


def widen_copies(
    space: Space, copies: Mapping[str, str], table: Table, rng: np.random.Generator
) -> Table:
    """*table* with the widest copy vectors that divide the rows of tiles, in most rows.

    Args:
        copies: For each stage that copies a tile, the column of its vector width.
    """
    open_columns = {d.columns[0]: d.domain for d in space.decisions if isinstance(d.domain, OneOf)}
    table = table.copy()
    for name, column in copies.items():
        domain = open_columns.get(column)
        if domain is None:
            continue

        def row(bounds: Bounds, name: str = name) -> list[Size]:
            return [row_length(bounds, space.state.stage(name))]

        [extent] = space.compute(("row", name), row, table)
        extents = as_array(extent, len(table))
        widest = np.ones(len(table), dtype=np.int64)
        for width in sorted(domain.values):
            widest = np.where(extents % width == 0, width, widest)
        at = space.columns.index(column)
        chosen = rng.random(len(table)) < _WIDEST
        table[:, at] = np.where(chosen, widest, table[:, at])
    return table


def draw_reductions(space: Space, stage: Stage, table: Table, rng: np.random.Generator) -> Table:
    """*table* with the reduction tiles of *stage* redrawn; round ones are more likely."""
    table = table.copy()
    names = {axis.name for axis in stage.compute.reduce_axes}
    splits = [r for r in stage.relations if isinstance(r, SplitRelation) and r.parent in names]
    columns = {f for split in splits for factors in split.factors for f in factors}
    for decision in space.decisions:
        if columns & set(decision.columns) and isinstance(decision.domain, Factors):
            table[:, space.slices[decision.name]] = draw_round(decision.domain, len(table), rng)
    return table


def draw_splits(space: Space, table: Table, rng: np.random.Generator) -> Table:
    """*table* with the open factors of all splits redrawn; round ones are more likely."""
    table = table.copy()
    for decision in space.decisions:
        if isinstance(decision.domain, Factors):
            table[:, space.slices[decision.name]] = draw_round(decision.domain, len(table), rng)
    return table
