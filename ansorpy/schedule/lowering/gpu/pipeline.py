"""Software pipelining: tiles are copied into shared memory some iterations before they are read.

With a depth of ``n``, there are ``n`` instances of each tile.  Iteration ``k`` waits for its own
copies and passes one barrier, after which all threads see these copies and have read the tile
that is overwritten next.  It then starts the copies of iteration ``k + n - 1`` and computes.

Asynchronous instructions of one iteration are left running during the next, whose copies must not
overwrite a tile that they read: copies then start one iteration later.  Tiles that threads fill
themselves are filled after the instructions of the iteration have started, which hide their loads.
Boxes need no fence before instructions read them, as the copy engine writes shared memory in the
same way as these read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.expr import Expr, Load, Select, Var, as_expr, is_zero
from ansorpy.ir.extents import Extent, least, most
from ansorpy.ir.loops import (
    Alloc,
    Async,
    AsyncCopy,
    Barrier,
    Buffer,
    Commit,
    For,
    ForKind,
    If,
    Let,
    Scope,
    Seq,
    Stmt,
    Store,
    Wait,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.strides import Strides, dense_strides
from ansorpy.schedule.lowering.gpu.asynchronous import begun, grouped, leaves_running, made_visible
from ansorpy.schedule.lowering.gpu.boxes import is_box_copy
from ansorpy.schedule.lowering.gpu.buffer_instances import InInstance

__all__ = ["Producer", "bound_to", "padded_strides", "pipelined"]

LEAST_BYTES = 4
"""The shortest asynchronous copy of the hardware (PTX ``cp.async``: 4, 8 or 16 bytes)."""


class Producer(NamedTuple):
    """The producer of a tile: its buffer, the variables to bind first, and the statement.

    The buffer exists for one iteration if it is *allocated* here.
    """

    buffer: Buffer
    lets: Sequence[tuple[Var, Expr]]
    fill: Stmt
    allocated: bool = True


def pipelined(var: Var, extent: Extent, depth: int, tiles: Sequence[Producer], use: Stmt) -> Stmt:
    """``for var in 0..extent: fill tiles; use`` with the copies *depth* - 1 iterations ahead."""
    under_way = int(leaves_running(use) and depth > 2)
    ahead = depth - 1 - under_way
    slots = {tile.buffer: _instances(tile.buffer, depth) for tile in tiles}
    step = Var(f"{var.name}.first")
    barrier = Barrier(Scope.SHARED)
    begin: list[Stmt] = [barrier]
    first = min(ahead, most(extent))
    fetched = _fetched(tiles, slots, var, step, depth)
    if least(extent) < first:
        fetched = If(step < as_expr(extent), fetched, None)
    begin.append(For(step, first, ForKind.SERIAL, Seq((fetched, Commit(Async.COPIES)))))
    begin += [Commit(Async.COPIES)] * (ahead - first)
    lets = [let for tile in tiles for let in tile.lets]
    used = InInstance(slots, var % depth).stmt(use)
    fetch: list[Stmt] = []
    in_boxes = all(is_box_copy(tile.fill) for tile in tiles)
    visible = () if in_boxes else made_visible(use)
    body: list[Stmt] = [Wait(Async.COPIES, ahead - 1), *visible, barrier]
    if ahead < most(extent):
        later = _fetched(tiles, slots, var, var + ahead, depth)
        fetch.append(If(var + ahead < as_expr(extent), later, None))
    fetch.append(Commit(Async.COPIES))
    if under_way and any(isinstance(s, Store) for s in walk_stmts(fetched)):
        body += [bound_to(lets, begun(used)), *fetch, Wait(Async.PRODUCTS, under_way)]
    else:
        body += [*fetch, bound_to(lets, grouped(used, under_way))]
    loop = For(var, extent, ForKind.SERIAL, Seq(tuple(body)))
    # The last groups are empty.  Where there are boxes, each has a barrier, and these are few.
    ended = [Wait(Async.COPIES, 0)] if any(is_box_copy(tile.fill) for tile in tiles) else []
    ended += [Wait(Async.PRODUCTS, 0)] if under_way else []
    stmt: Stmt = Seq((*begin, loop, *ended))
    for buffer in slots.values():
        stmt = Alloc(buffer, stmt)
    return stmt


def bound_to(lets: Sequence[tuple[Var, Expr]], stmt: Stmt) -> Stmt:
    """*stmt* with *lets* around it."""
    for var, value in reversed(lets):
        stmt = Let(var, value, stmt)
    return stmt


def padded_strides(shape: tuple[int, ...], pad: int) -> Strides | None:
    """Strides of a tile with *pad* unused elements after each row; None if it stays dense."""
    if not pad or len(shape) < 2:
        return None
    return dense_strides((*shape[:-1], shape[-1] + pad))


def _instances(buffer: Buffer, depth: int) -> Buffer:
    strides = None
    if buffer.strides is not None:
        strides = (buffer.shape[0] * buffer.strides[0], *buffer.strides)
    shape = (depth, *buffer.shape)
    return Buffer(buffer.name, shape, buffer.dtype, buffer.scope, strides, swizzle=buffer.swizzle)


def _fetched(
    tiles: Sequence[Producer], slots: dict[Buffer, Buffer], var: Var, at: Expr, depth: int
) -> Stmt:
    """The statement that fills the tiles of iteration *at*."""
    copies = _Started(slots, var % depth)
    filled = Seq(tuple(bound_to(tile.lets, copies.stmt(tile.fill)) for tile in tiles))
    return substitute(filled, {var: at})


class _Started(InInstance):
    """As its base, and stores that copy into the buffers become asynchronous copies."""

    vector: For | None = None

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, For) and s.kind is ForKind.VECTORIZED:
            self.vector = s
            s = super().stmt(s)
            self.vector = None
            return s
        fills = isinstance(s, Store) and s.buffer in self.instances
        s = super().stmt(s)
        if fills and isinstance(s, Store) and s.reduce is None and self._can_copy(s):
            return AsyncCopy(s.buffer, s.indices, s.value)
        return s

    def _can_copy(self, s: Store) -> bool:
        """Whether *s* copies, or sets to zero, at least ``LEAST_BYTES`` at once."""
        value = s.value
        if isinstance(value, Select) and is_zero(value.other):
            value = value.then
        if not isinstance(value, Load) or not isinstance(value.source, Buffer):
            return False
        outside = value.source.scope in (Scope.GLOBAL, Scope.WORKSPACE)
        return outside and s.buffer.dtype.bytes * self._together(value) >= LEAST_BYTES

    def _together(self, load: Load) -> int:
        """How many neighbours in memory the vectorized loop around *load* reads."""
        if self.vector is None or not isinstance(self.vector.extent, int) or not load.indices:
            return 1
        return self.vector.extent if linear(load.indices[-1]).terms.get(self.vector.var) == 1 else 1
