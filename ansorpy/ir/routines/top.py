"""The places of the first elements of sorted rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ansorpy.arrays import Array, Ints
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType, as_dtype
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import AnyExtent, extreme, least, most
from ansorpy.ir.loops import Buffer, ForKind, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.keys import LARGEST, has_place, key_of
from ansorpy.ir.routines.sorting import Items, sort, with_items
from ansorpy.ir.routines.statements import (
    add,
    any_of,
    at,
    in_blocks,
    let,
    local,
    loop,
    over_rows,
    put,
    seq,
    when,
)
from ansorpy.ir.symbols import SizeOp

__all__ = ["TopPlaces", "order_of"]

_INSERTED = 16
"""So many elements are kept in order while a row is read."""
_LANES = 16
"""Elements that are asked at a time whether one of them comes before the last of those."""
_NO_PLACE = 1 << 62
"""Behind all others."""
_SPARE = 32
"""Least number of items collected before they are sorted again."""
_SHARE = 4
"""Rows of which more than one element in so many is wanted are sorted as a whole."""


@dataclass(frozen=True)
class TopPlaces(Routine):
    """The places of the smallest, or *largest*, elements of each row ``x[rows, n]``, in order.

    Among equal elements, the first comes first; NaN is larger than all numbers.  If few are wanted,
    the row is read once: an element that comes before the last of the first ones found so far is
    inserted into a list.  It joins one that is long, which is sorted and cut whenever it is full.
    """

    name: ClassVar[str] = "top_places"
    largest: bool

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        (x,) = inputs
        rows, n = x.shape
        wanted = output.shape[1]
        is_whole = least(_SHARE * wanted - n) >= 0 or least(wanted) < 1
        is_short = isinstance(wanted, int) and 0 < wanted <= _INSERTED
        room = wanted if is_short else most(n)
        if not is_short and not is_whole:
            room = most(wanted) + max(most(wanted), _SPARE)

        def sorted_items(items: Items, row: Expr) -> Stmt:
            if is_short:
                return self._insert(items, x, row, wanted)
            if is_whole:
                return seq(self._fill(items, x, row, n), sort(items, n))
            return self._filter(items, x, row, wanted)

        def of_row(row: Expr) -> Stmt:
            def found(items: Items) -> Stmt:
                kept = loop("k", wanted, lambda k: put(output, row, k, value=items.place(0, k)))
                return seq(sorted_items(items, row), kept)

            return with_items(room, has_place(x.dtype), found)

        return over_rows(rows, n, of_row)

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        return order_of(inputs[0], largest=self.largest)[:, : shape[1]]

    def _key(self, x: Buffer, row: Expr, i: Expr) -> Expr:
        return key_of(at(x, row, i), i, largest=self.largest)

    def _fill(self, items: Items, x: Buffer, row: Expr, extent: AnyExtent) -> Stmt:
        return loop("i", extent, lambda i: items.put(0, i, self._key(x, row, i), i))

    def _scan(
        self, x: Buffer, row: Expr, first: AnyExtent, bar: Buffer, join: Callable[[Expr], Stmt]
    ) -> Stmt:
        """Let each element from number *first* on *join* that comes before *bar*."""

        def joins(i: Expr) -> Expr:
            value, limit = (_comparable(e) for e in (at(x, row, i), at(bar, 0)))
            return ~(value <= limit if self.largest else value >= limit)

        def single(i: Expr) -> Stmt:
            return let("at", i + first, lambda place: when(joins(place), join(place)))

        def block(flag: Buffer, b: Expr) -> Stmt:
            each = loop("lane", _LANES, lambda lane: single(b + lane))
            return any_of(flag, _LANES, lambda lane: joins(b + first + lane), each)

        return local(
            "flag", (1,), DType.INT32,
            lambda flag: in_blocks(x.shape[1] - first, _LANES, partial(block, flag), single),
        )  # fmt: skip

    def _filter(self, items: Items, x: Buffer, row: Expr, wanted: AnyExtent) -> Stmt:
        """Sort the items found so far, and let the elements behind them join."""
        room = items.room
        first = extreme(SizeOp.MIN, x.shape[1], room)

        def sorted_items(count: Buffer) -> Stmt:
            return seq(items.pad(at(count, 0), room), sort(items, room))

        def raised(count: Buffer, bar: Buffer) -> Stmt:
            def to(place: Expr) -> Stmt:
                return seq(put(bar, 0, value=at(x, row, place)), put(count, 0, value=wanted))

            return seq(sorted_items(count), let("last", items.place(0, as_expr(wanted) - 1), to))

        def join(count: Buffer, bar: Buffer, i: Expr) -> Stmt:
            return seq(
                items.put(0, at(count, 0), self._key(x, row, i), i),
                add(count, 0, value=1),
                when(at(count, 0).equal(room), raised(count, bar)),
            )

        def scan(count: Buffer, bar: Buffer) -> Stmt:
            return seq(
                self._fill(items, x, row, first), put(count, 0, value=first), raised(count, bar),
                self._scan(x, row, first, bar, partial(join, count, bar)), sorted_items(count),
            )  # fmt: skip

        return local(
            "count", (1,), DType.INT64,
            lambda count: local("bar", (1,), x.dtype, lambda bar: scan(count, bar)),
        )  # fmt: skip

    def _insert(self, items: Items, x: Buffer, row: Expr, wanted: int) -> Stmt:
        """Keep a sorted list, into which each element that comes before its last is inserted."""

        def exchange(spare: Items, j: Expr) -> Stmt:
            """The first of the item carried and that at *j* stays; the other is carried on."""
            (key, mine), (other, its) = spare.item(0, 0), items.item(0, j)
            is_first = key < other
            if not has_place(x.dtype):
                is_first = is_first | (key.equal(other) & (mine < its))

            def stays(first: Expr) -> Stmt:
                own = first > 0
                return seq(
                    spare.put(0, 1, select(own, other, key), select(own, its, mine)),
                    items.put(0, j, select(own, key, other), select(own, mine, its)),
                    spare.move(0, 1, 0, 0),
                )

            return let("first", is_first.astype(DType.INT64), stays)

        def insert(spare: Items, i: Expr) -> Stmt:
            return seq(
                spare.put(0, 0, self._key(x, row, i), i),
                loop("j", wanted, partial(exchange, spare), ForKind.UNROLLED),
            )

        def run(bar: Buffer, spare: Items) -> Stmt:
            def raised(place: Expr) -> Stmt:
                return put(bar, 0, value=at(x, row, place))

            raise_bar = let("last", items.place(0, wanted - 1), raised)
            return seq(
                loop("k", wanted, lambda k: items.put(0, k, LARGEST, as_expr(_NO_PLACE))),
                loop("i", wanted, partial(insert, spare)),
                raise_bar,
                self._scan(x, row, wanted, bar, lambda i: seq(insert(spare, i), raise_bar)),
            )

        return local(
            "bar", (1,), x.dtype,
            lambda bar: with_items(2, has_place(x.dtype), partial(run, bar)),
        )  # fmt: skip


def _comparable(x: Expr) -> Expr:
    return x.astype(DType.INT32) if x.dtype is DType.BOOL else x


def order_of(x: Array, *, largest: bool) -> Ints:
    """The places of the elements of each row of *x*, sorted as :class:`TopPlaces` sorts them."""
    wide = x.astype(np.float32) if as_dtype(x.dtype).is_half else x
    _, ranks = np.unique(wide, return_inverse=True)
    ranks = ranks.reshape(x.shape)
    return np.argsort(-ranks if largest else ranks, axis=-1, kind="stable").astype(np.int64)
