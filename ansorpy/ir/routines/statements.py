"""Short forms of statements, with which routines are written."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ExprLike, Load, ReduceKind, Var, as_expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.loops import Alloc, Buffer, For, ForKind, If, Let, Scope, Seq, Stmt, Store

__all__ = [
    "add", "any_of", "at", "in_blocks", "in_vectors", "let", "local", "loop", "over_rows", "put",
    "seq", "when",
]  # fmt: skip

_LITTLE = 1 << 12
"""Fewer elements than this are worked on by one thread: waking another takes longer."""


def seq(*parts: Stmt) -> Stmt:
    """*parts* one after another."""
    return Seq(parts)


def at(buffer: Buffer, *indices: ExprLike) -> Expr:
    """An element of *buffer*."""
    return Load(buffer, tuple(as_expr(index, DType.INT64) for index in indices))


def put(buffer: Buffer, *indices: ExprLike, value: ExprLike) -> Stmt:
    """``buffer[indices] = value``."""
    places = tuple(as_expr(index, DType.INT64) for index in indices)
    return Store(buffer, places, as_expr(value, buffer.dtype), None)


def add(buffer: Buffer, *indices: ExprLike, value: ExprLike) -> Stmt:
    """``buffer[indices] += value``."""
    return put(buffer, *indices, value=at(buffer, *indices) + as_expr(value, buffer.dtype))


def loop(
    name: str,
    extent: AnyExtent,
    body: Callable[[Expr], Stmt],
    kind: ForKind = ForKind.SERIAL,
) -> Stmt:
    """``for name in range(extent)``."""
    var = Var(name)
    return For(var, extent, kind, body(var))


def in_blocks(
    extent: AnyExtent, lanes: int, block: Callable[[Expr], Stmt], single: Callable[[Expr], Stmt]
) -> Stmt:
    """*block* of the first element of each *lanes* of them, then *single* of each of the rest."""
    blocks = extent // lanes
    first = loop("block", blocks, lambda b: block(b * lanes)) if most(blocks) else seq()
    left = extent - blocks * lanes
    if most(left) < 1:
        return first
    return seq(first, loop("rest", left, lambda i: single(i + as_expr(blocks * lanes))))


def in_vectors(extent: AnyExtent, lanes: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """A loop over *extent*, *lanes* iterations at a time as a vector, then those that are left."""

    def block(first: Expr) -> Stmt:
        var = Var("lane")
        return For(var, lanes, ForKind.VECTORIZED, body(first + var))

    return in_blocks(extent, lanes, block, body)


def any_of(flag: Buffer, lanes: int, holds: Callable[[Expr], Expr], *then: Stmt) -> Stmt:
    """*then* if the condition *holds* for one of the numbers below *lanes*, asked as a vector."""
    var = Var("lane")
    asked = Store(flag, (as_expr(0),), holds(var).astype(flag.dtype), ReduceKind.MAX)
    vector = For(var, lanes, ForKind.VECTORIZED, asked)
    return seq(put(flag, 0, value=0), vector, when(at(flag, 0) > 0, *then))


def over_rows(rows: AnyExtent, row: AnyExtent, body: Callable[[Expr], Stmt]) -> Stmt:
    """A loop over *rows*, each of about *row* elements; in parallel if they are enough."""
    several = most(rows) > 1 and most(prod((rows, row))) >= _LITTLE
    return loop("row", rows, body, ForKind.PARALLEL if several else ForKind.SERIAL)


def let(name: str, value: ExprLike, body: Callable[[Expr], Stmt]) -> Stmt:
    """``name = value`` in *body*, for an int64 *value*."""
    var = Var(name)
    return Let(var, as_expr(value, DType.INT64), body(var))


def when(cond: Expr, *parts: Stmt) -> Stmt:
    """*parts* if *cond* holds."""
    return If(cond, seq(*parts), None)


def local(name: str, shape: tuple[int, ...], dtype: DType, body: Callable[[Buffer], Stmt]) -> Stmt:
    """*body* with a buffer of its own, whose contents are undefined at first."""
    buffer = Buffer(name, shape, dtype, Scope.LOCAL)
    return Alloc(buffer, body(buffer))
