"""Register tiles under guards, computed in full: only loads and the final stores look at guards.

A guard around a statement in an unrolled loop breaks the tile up, and a guard that differs between
lanes masks its arithmetic.  Accumulators are private, so those that nothing stores may hold
anything::

    for k:                              if i * 6 < n:
      for r in 0..6  # unrolled           for k:
        if i * 6 + r < n:         -->       for r in 0..6  # unrolled
          acc[r] += A[i * 6 + r, k]           acc[r] += A[i * 6 + (r if i * 6 + r < n else 0), k]

Rows beyond the guard repeat the first row of the tile.  Lanes beyond it load zeros.  If no
iteration of the second half is needed, a tile of half the size is computed instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.tiles import Tile, falls
from ansorpy.codegen.vectors import lanes_for
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Expr, Load, Select, SizeVar, Var, as_expr, walk
from ansorpy.ir.loops import For, ForKind, Stmt
from ansorpy.ir.rewrite.rewriter import Rewriter, map_statements, substitute
from ansorpy.ir.sizes import fixed
from ansorpy.target import Target

__all__ = ["Half", "half_of", "holds_first", "in_full"]


def holds_first(tile: Tile) -> Expr | None:
    """The condition that the guards of *tile* hold in its first iteration; None if unsuitable.

    They are suitable if they hold in the first iteration whenever they hold in any, and if nothing
    but the store is under them, whose value may be computed where they fail.
    """
    if not tile.guards or not tile.bare:
        return None
    dims = {loop.var for loop in tile.dims}
    if any(free_vars(part) & dims for part in tile.varying):
        return None
    parts = tile.conditions
    if not all(falls(part, dims) for part in parts):
        return None
    return substitute(all_of(*parts), {var: as_expr(0) for var in dims})


@dataclass(frozen=True)
class Half:
    """The first *extent* iterations of *loop*, which suffice unless *needs_more* holds."""

    loop: For
    extent: int
    needs_more: Expr

    def of_tile(self, tile: Tile) -> Tile:
        """*tile* with these iterations only."""
        dims = (self._of_loop(d) if d.var is self.loop.var else d for d in tile.dims)
        return replace(tile, dims=tuple(dims))

    def of_nest(self, nest: For) -> For:
        """The loops around the store of a tile, with these iterations only."""
        if nest.var is self.loop.var:
            return self._of_loop(nest)
        made = _within(nest, self.of_nest)
        assert isinstance(made, For)
        return made

    def _of_loop(self, loop: For) -> For:
        return For(loop.var, self.extent, loop.kind, loop.body)


def _within(s: Stmt, fn: Callable[[For], For]) -> Stmt:
    return map_statements(s, lambda part: fn(part) if isinstance(part, For) else _within(part, fn))


_FEW_ACCUMULATORS = 4
"""Fewer rows than make this many vectors take as long: each of their sums waits for the last."""


def half_of(tile: Tile, target: Target) -> Half | None:
    """Half of a tile whose guards are suitable for :func:`in_full`; None if it is not worth it.

    Without dimensions, tiles were chosen for the size at hand.
    """
    vectors = [loop for loop in tile.dims if loop.kind is ForKind.VECTORIZED]
    lanes = {loop.var for loop in vectors}
    parts = [part for part in tile.conditions if any(isinstance(e, SizeVar) for e in walk(part))]
    of_lanes = free_vars(*(part for part in parts if free_vars(part) & lanes))
    is_large = tile.vectors(target) > _FEW_ACCUMULATORS
    for loop in sorted(tile.dims, key=lambda loop: loop.var not in of_lanes):
        of_loop = [part for part in parts if loop.var in free_vars(part)]
        step = 1
        if loop in vectors:
            step = lanes_for(tile.store, target) if len(vectors) == 1 else fixed(loop.extent)
        worth = loop.var in of_lanes or is_large
        if not of_loop or not worth or fixed(loop.extent) <= step:
            continue
        extent = -(-fixed(loop.extent) // (2 * step)) * step
        others = {other.var: as_expr(0) for other in tile.dims}
        needed = substitute(all_of(*of_loop), {**others, loop.var: as_expr(extent)})
        return Half(loop, extent, needed)
    return None


def in_full(tile: Tile) -> Expr:
    """What *tile* adds in all iterations, also in those that its guards skip."""
    return _InFull(tile).expr(tile.store.value)


class _InFull(Rewriter):
    def __init__(self, tile: Tile) -> None:
        super().__init__()
        self.lanes = {loop.var for loop in tile.dims if loop.kind is ForKind.VECTORIZED}
        self.dims = {loop.var for loop in tile.dims}
        self.parts = tile.conditions

    def leave(self, e: Expr) -> Expr:
        if not isinstance(e, Load):
            return e
        used = free_vars(*e.indices) & self.dims
        masks = [p for p in self.parts if free_vars(p) & used and free_vars(p) & self.lanes]
        rows = {var: self._first_beyond(var) for var in used - self.lanes}
        moved = Load(e.source, tuple(substitute(index, rows) for index in e.indices))
        return Select(all_of(*masks), moved, as_expr(0, e.dtype)) if masks else moved

    def _first_beyond(self, var: Var) -> Expr:
        """The iteration *var* of rows, or the first one beyond a guard."""
        guards = [p for p in self.parts if var in free_vars(p) and not free_vars(p) & self.lanes]
        return Select(all_of(*guards), var, as_expr(0)) if guards else var
