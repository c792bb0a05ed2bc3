"""The register tile: what one step of the innermost reduction computes, a candidate each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ansorpy.cost.analytic.machine import MachineModel
from ansorpy.cost.view import AccessView, Floats, LeafView, Masks

__all__ = ["Tile", "tile_of"]


@dataclass(frozen=True)
class Tile:
    """The space loops inside the innermost reduce loop; without a reduction, the innermost
    vector and unrolled loops, whose copies share what they load.

    The lanes of a reduction are part of the tile like a vector of space: each has its sum.
    A *step* computes the tile once: one iteration of the innermost reduce loop.  A *visit* is a
    run of steps over consecutive reduce loops, during which accumulators can stay in registers.
    """

    inside: Masks
    """``[L, n]``: the loop belongs to the tile."""
    lanes: float
    length: Floats
    """Elements along the vector loops (1 when nothing is vectorised)."""
    vectors: Floats
    """Vector registers that one row of the tile fills."""
    rows: Floats
    """Extent of the tile's other loops together."""
    steps: Floats
    visits: Floats
    reduces: Masks
    """``[n]``: some reduce loop has more than one iteration."""
    unrolled: Masks
    """``[n]``: the rows are unrolled, so accumulators can be registers."""
    unrolled_steps: Floats
    """Steps in one unrolled body: the reduce loops that were unrolled with the rows."""
    sums_apart: Masks
    """``[n]``: the lanes sum apart and are combined when a visit ends."""

    @property
    def accumulators(self) -> Floats:
        return self.rows * self.vectors

    def loads(self, access: AccessView) -> tuple[Floats, Floats]:
        """(vector or broadcast loads, gathered elements) of *access* in one step.

        Unrolled rows share what does not move; rows in a loop load everything again.
        """
        rows = np.ones_like(self.rows)
        for mask, moves, extent in zip(self.row_loops, access.moves, self.extent, strict=True):
            again = mask & (moves | ~self.unrolled)
            rows = np.where(again, rows * extent, rows)
        contiguous, gathered = self.along_vector(access)
        moves_in_vector = (self.vector & access.moves).any(axis=0)
        per_row = np.where(moves_in_vector, self.vectors, 1.0)
        simple = np.where(gathered, 0.0, rows * per_row)
        return simple, np.where(gathered, rows * self.length, 0.0)

    def along_vector(self, access: AccessView) -> tuple[Masks, Masks]:
        """(contiguous, gathered) along the vector loops; neither means one broadcast element."""
        moves = self.vector & access.moves
        stride = np.full(self.rows.shape, np.inf)
        for mask, flat in zip(moves, access.flat, strict=True):
            stride = np.where(mask, np.minimum(stride, flat), stride)
        some = moves.any(axis=0)
        return some & (stride == 1), some & (stride != 1)

    vector: Masks
    row_loops: Masks
    extent: Floats


def tile_of(view: LeafView, machine: MachineModel) -> Tile:
    """The register tile of every candidate of *view*."""
    rows = view.rows
    reducing = np.array(view.reduce, dtype=bool)[:, None] & view.real
    is_reduce = reducing & ~view.vector
    reduces: Masks = np.logical_or.reduce(is_reduce, axis=0)
    inside = np.zeros((view.depth, rows), dtype=bool)
    open_, in_run = np.ones(rows, dtype=bool), np.ones(rows, dtype=bool)
    run = np.ones(rows)
    for loop in reversed(range(view.depth)):
        here, real = is_reduce[loop], view.real[loop]
        open_ = open_ & ~here & (reduces | view.vector[loop] | view.unroll[loop] | ~real)
        inside[loop] = open_ & real
        in_run = in_run & (here | open_ | ~real)
        run = np.where(here & in_run, run * view.extent[loop], run)
    vector = inside & view.vector
    row_loops = inside & ~view.vector
    length, tile_rows = _extent_of(view, vector), _extent_of(view, row_loops)
    lanes = machine.vector_bits / 8 / view.written.elem_bytes
    marked = (~row_loops | view.unroll).all(axis=0)
    unrolled = marked | (tile_rows <= np.maximum(view.max_unroll, 1))
    steps = view.evaluations / (length * tile_rows)
    return Tile(
        inside=inside,
        lanes=lanes,
        length=length,
        vectors=np.ceil(length / lanes),
        rows=tile_rows,
        steps=steps,
        visits=steps / run,
        reduces=reduces,
        unrolled=unrolled,
        unrolled_steps=_unrolled_steps(view, is_reduce, tile_rows, unrolled),
        sums_apart=np.logical_or.reduce(reducing & vector, axis=0),
        vector=vector,
        row_loops=row_loops,
        extent=view.extent,
    )


def _unrolled_steps(view: LeafView, is_reduce: Masks, rows: Floats, unrolled: Masks) -> Floats:
    """Extents of the innermost reduce loops that fit under the unroll limit with the tile."""
    total, open_ = np.ones(view.rows), unrolled
    for loop in reversed(range(view.depth)):
        fits = rows * total * view.extent[loop] <= view.max_unroll
        open_ = open_ & (~is_reduce[loop] | fits)
        total = np.where(open_ & is_reduce[loop], total * view.extent[loop], total)
    return total


def _extent_of(view: LeafView, loops: Masks) -> Floats:
    total = np.ones(view.rows)
    for mask, extent in zip(loops, view.extent, strict=True):
        total = np.where(mask, total * extent, total)
    return total
