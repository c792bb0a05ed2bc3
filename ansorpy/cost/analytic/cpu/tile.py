"""The register tile: what one step of the innermost reduction computes, per setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from ansorpy.arrays import Floats, Masks
from ansorpy.codegen.vectors import bits_of
from ansorpy.cost.analytic.cpu.machine import MachineModel
from ansorpy.cost.nest_view import AccessView, LeafView

__all__ = ["Tile", "tile_of"]


@dataclass(frozen=True)
class Tile:
    """The register tile of a statement.

    It consists of the space loops inside the innermost reduce loop; without a reduction, of the
    innermost vector and unrolled loops, whose copies share loads.

    The vector lanes of a reduction belong to the tile like those of space loops: each has its own
    sum.
    A *step* computes the tile once: one iteration of the innermost reduce loop.  A *visit* is a
    run of steps over consecutive reduce loops, during which accumulators can stay in registers.
    """

    inside: Mapping[int, Masks]
    """By loop number, for loops that may belong to the tile: where they do."""
    lanes: float
    length: Floats
    """Elements along the vector loops (1 when nothing is vectorised)."""
    vectors: Floats
    """Vector registers that one row of the tile fills."""
    rows: Floats
    """Product of the extents of the tile's other loops."""
    steps: Floats
    visits: Floats
    independent: Floats
    """Consecutive visits that do not wait for each other's sums: until a reduce loop goes on."""
    reduces: Masks
    """``[n]``: whether some reduce loop has more than one iteration."""
    unrolled: Masks
    """``[n]``: whether the rows are unrolled, so that accumulators can be in registers."""
    unrolled_steps: Floats
    """Steps in one unrolled body, from the reduce loops that are unrolled with the rows."""
    sums_apart: Masks
    """``[n]``: whether each lane has its own partial sum; these are combined when a visit ends."""
    spare: Floats
    """Registers that the accumulators leave free."""
    vector: Mapping[int, Masks]
    """By loop number, where the tile's loops are vectorised; ``row_loops``: where they are not."""
    row_loops: Mapping[int, Masks]
    extent: Sequence[Floats]

    @property
    def accumulators(self) -> Floats:
        return self.rows * self.vectors

    def loads(self, access: AccessView) -> tuple[Floats, Floats]:
        """(vector or broadcast loads, gathered elements) of *access* in one step.

        Unrolled rows share values that do not move, as long as the spare registers can hold them
        until the next row needs them; rows in a loop load everything again.  A square that is
        transposed takes a load for each vector, and as many rounds of shuffles as halve its lanes.
        """
        contiguous, gathered = self.along_vector(access)
        per_row = np.where(contiguous | gathered, self.vectors, 1.0)
        rows, values, reloads = np.ones_like(self.rows), per_row, ~self.unrolled
        for loop, mask in self.row_loops.items():  # innermost first
            moves = access.moves.get(loop)
            again = reloads | (values > self.spare)
            again = mask & (again if moves is None else moves | again)
            rows = np.where(again, rows * self.extent[loop], rows)
            if moves is not None:
                values = np.where(mask & moves, values * self.extent[loop], values)
        apart = gathered
        shuffled: Floats | float = 0.0
        for mask in self.transposed(access).values():
            apart = apart & ~mask
            shuffled = np.where(mask, rows * self.vectors * log2(self.lanes), shuffled)
        simple = np.where(apart, 0.0, rows * per_row)
        return simple, np.where(apart, rows * self.length, shuffled)

    def transposed(self, access: AccessView) -> dict[int, Masks]:
        """By unrolled row loop: where vectors along it are read and transposed in registers.

        Codegen does so with squares of elements (:mod:`ansorpy.codegen.llvm.emit.transposes`).
        """
        possible = self.unrolled & ~self.reduces
        if possible.any():
            possible = possible & self.along_vector(access)[1]
        if not possible.any():
            return {}
        return {
            loop: possible & mask & access.moves[loop]
            & (access.flat[loop] == 1) & (self.extent[loop] >= self.lanes)
            for loop, mask in self.row_loops.items()
            if loop in access.moves
        }  # fmt: skip

    def along_vector(self, access: AccessView) -> tuple[Masks, Masks]:
        """(contiguous, gathered) along the vector loops; if neither, one element is broadcast."""
        stride: Floats | None = None
        for loop, mask in self.vector.items():
            if loop in access.moves:
                flat = np.where(mask & access.moves[loop], access.flat[loop], np.inf)
                stride = flat if stride is None else np.minimum(stride, flat)
        if stride is None:
            nowhere = np.zeros(self.rows.shape, dtype=bool)
            return nowhere, nowhere
        contiguous: Masks = stride == 1
        return contiguous, np.isfinite(stride) & ~contiguous


def tile_of(view: LeafView, machine: MachineModel) -> Tile:
    """The register tile of every setting of *view*."""
    rows = view.rows
    reducing = {loop: mask for loop, mask in view.real.items() if view.is_reduce(loop)}
    is_reduce = {loop: _without(mask, view.vector.get(loop)) for loop, mask in reducing.items()}
    reduces = _any(is_reduce.values(), rows)
    inside = _inside(view, is_reduce, reduces, machine)
    vector = {n: mask & view.vector[n] for n, mask in inside.items() if n in view.vector}
    row_loops = {n: _without(mask, view.vector.get(n)) for n, mask in inside.items()}
    length, tile_rows = _extent_of(view, vector), _extent_of(view, row_loops)
    lanes = _lanes(view, machine)
    loose = _any((_without(m, view.unroll.get(n)) for n, m in row_loops.items()), rows)
    steps = view.evaluations / (length * tile_rows)
    vectors = np.ceil(length / lanes)
    sums = np.where(reduces, tile_rows * vectors, 0.0)
    run, independent = _run(view, is_reduce, inside)
    return Tile(
        inside=inside,
        lanes=lanes,
        length=length,
        vectors=vectors,
        rows=tile_rows,
        steps=steps,
        visits=steps / run,
        independent=independent,
        reduces=reduces,
        unrolled=~loose,
        unrolled_steps=_unrolled_steps(view, is_reduce, ~loose),
        sums_apart=_any((vector[n] for n in reducing if n in vector), rows),
        spare=np.maximum(machine.vector_registers - sums, 1.0),
        vector=vector,
        row_loops=row_loops,
        extent=view.extent,
    )


def _lanes(view: LeafView, machine: MachineModel) -> float:
    """Lanes of a vector of the widest element type."""
    return max(1.0, machine.vector_bits // bits_of(view.leaf.op))


def _without(mask: Masks, other: Masks | None) -> Masks:
    return mask if other is None else mask & ~other


def _any(masks: Iterable[Masks], rows: int) -> Masks:
    some = np.zeros(rows, dtype=bool)
    for mask in masks:
        some |= mask
    return some


def _inside(
    view: LeafView, is_reduce: Mapping[int, Masks], reduces: Masks, machine: MachineModel
) -> dict[int, Masks]:
    """Where each loop belongs to the tile: inside the innermost reduce loop, or marked.

    Space loops around reduce loops also belong to it if everything inside is unrolled and the
    accumulators fit in registers, because codegen promotes accumulators across the outermost loop
    it can (:mod:`ansorpy.codegen.passes.promote_accumulators`).
    """
    inside: dict[int, Masks] = {}
    lanes = _lanes(view, machine)
    open_ = expanded = np.ones(view.rows, dtype=bool)
    sums = vectors = length = np.ones(view.rows)
    for loop in reversed(view.real):
        real, extent, vector = view.real[loop], view.extent[loop], view.vector.get(loop)
        unroll = view.unroll.get(loop)
        if vector is not None:
            length = np.where(vector, length * extent, length)
            vectors, extent = np.ceil(length / lanes), np.where(vector, 1.0, extent)
        written_out = ~real
        for mark in (vector, unroll):
            written_out = written_out if mark is None else written_out | mark
        expanded = expanded & written_out
        if loop in is_reduce:
            open_ = open_ & ~is_reduce[loop]
        open_ = open_ & (reduces | written_out)
        joins = open_
        if not view.is_reduce(loop):
            wider = sums * extent
            if not open_.all():
                fits = reduces & (wider * vectors <= machine.vector_registers)
                expanded = expanded & (open_ | fits | ~real)
                joins = open_ | expanded
            sums = np.where(joins, wider, sums)
        if not (joins | expanded).any():
            break
        inside[loop] = joins & real
    return inside


def _run(
    view: LeafView, is_reduce: Mapping[int, Masks], inside: Mapping[int, Masks]
) -> tuple[Floats, Floats]:
    """(steps of one visit, consecutive visits of different sums).

    The first is the product of the consecutive reduce loops' extents around the tile, the second
    that of the consecutive space loops' extents around those.
    """
    run, visits = np.ones(view.rows), np.ones(view.rows)
    in_run = apart = np.ones(view.rows, dtype=bool)
    for loop in reversed(view.real):
        here = is_reduce.get(loop)
        goes_on = ~view.real[loop]
        for mask in (here, inside.get(loop)):
            goes_on = goes_on if mask is None else goes_on | mask
        in_run = in_run & goes_on
        if here is None:
            visits = np.where(apart & ~in_run, visits * view.extent[loop], visits)
        else:
            run = np.where(here & in_run, run * view.extent[loop], run)
            apart = apart & (in_run | ~here)
        if not apart.any():
            break
    return run, visits


def _unrolled_steps(view: LeafView, is_reduce: dict[int, Masks], unrolled: Masks) -> Floats:
    """Product of extents of the innermost reduce loops that are unrolled with the tile."""
    total, open_ = np.ones(view.rows), unrolled
    for loop in reversed(is_reduce):
        open_ = open_ & ~_without(is_reduce[loop], view.unroll.get(loop))
        total = np.where(open_ & is_reduce[loop], total * view.extent[loop], total)
    return total


def _extent_of(view: LeafView, loops: Mapping[int, Masks]) -> Floats:
    total = np.ones(view.rows)
    for loop, mask in loops.items():
        total = np.where(mask, total * view.extent[loop], total)
    return total
