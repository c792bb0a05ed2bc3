"""The places of the first elements of sorted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Expr, Function, as_expr
from ansorpy.ir.extents import AnyExtent, extreme, least, most
from ansorpy.ir.loops import Buffer, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.keys import has_place, key_of
from ansorpy.ir.routines.sorting import Items, sort, with_items
from ansorpy.ir.routines.statements import add, at, let, local, loop, over_rows, put, seq, when
from ansorpy.ir.symbols import SizeOp

__all__ = ["TopPlaces", "order_of"]

_SPARE = 32
"""Least number of items collected before they are sorted again."""
_SHARE = 4
"""Rows of which more than one element in so many is wanted are sorted as a whole."""


@dataclass(frozen=True)
class TopPlaces(Routine):
    """The places of the smallest, or *largest*, elements of each row ``x[rows, n]``, in order.

    Among equal elements, the first comes first; NaN is larger than all numbers.  If few are wanted,
    the row is read once: an element that comes before the last of the first ones found so far joins
    a list, which is sorted and cut whenever it is full.
    """

    name: ClassVar[str] = "top_places"
    largest: bool

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        (x,) = inputs
        rows, n = x.shape
        wanted = output.shape[1]
        is_whole = least(_SHARE * wanted - n) >= 0 or most(n) <= _SPARE or least(wanted) < 1
        room = most(n) if is_whole else most(wanted) + max(most(wanted), _SPARE)

        def of_row(row: Expr) -> Stmt:
            def found(items: Items) -> Stmt:
                first = self._fill(items, x, row, extreme(SizeOp.MIN, n, room))
                rest = sort(items, n) if is_whole else self._filter(items, x, row, wanted)
                kept = loop("k", wanted, lambda k: put(output, row, k, value=items.place(0, k)))
                return seq(first, rest, kept)

            return with_items(room, has_place(x.dtype), found)

        return over_rows(rows, n, of_row)

    def evaluate(
        self, inputs: Sequence[npt.NDArray[Any]], shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        return order_of(inputs[0], largest=self.largest)[:, : shape[1]]

    def _key(self, x: Buffer, row: Expr, i: Expr) -> Expr:
        return key_of(at(x, row, i), i, largest=self.largest)

    def _fill(self, items: Items, x: Buffer, row: Expr, extent: AnyExtent) -> Stmt:
        return loop("i", extent, lambda i: items.put(0, i, self._key(x, row, i), i))

    def _filter(self, items: Items, x: Buffer, row: Expr, wanted: AnyExtent) -> Stmt:
        """Sort the items found so far, and let the elements behind them join."""
        n, room = x.shape[1], items.room
        first = extreme(SizeOp.MIN, n, room)

        def sorted_items(count: Buffer) -> Stmt:
            return seq(items.pad(at(count, 0), room), sort(items, room))

        def raised(count: Buffer, bar: Buffer) -> Stmt:
            def to(place: Expr) -> Stmt:
                return seq(put(bar, 0, value=at(x, row, place)), put(count, 0, value=wanted))

            return seq(sorted_items(count), let("last", items.place(0, as_expr(wanted) - 1), to))

        def element(count: Buffer, bar: Buffer, i: Expr) -> Stmt:
            value, limit = (_comparable(e) for e in (at(x, row, i), at(bar, 0)))
            is_behind = value <= limit if self.largest else value >= limit
            joined = items.put(0, at(count, 0), self._key(x, row, i), i)
            is_full = at(count, 0).equal(room)
            return when(
                Call(Function.NOT, (is_behind,)),
                joined, add(count, 0, value=1), when(is_full, raised(count, bar)),
            )  # fmt: skip

        def scan(count: Buffer, bar: Buffer) -> Stmt:
            def later(i: Expr) -> Stmt:
                return let("at", i + first, lambda place: element(count, bar, place))

            return seq(
                put(count, 0, value=first), raised(count, bar),
                loop("i", n - first, later), sorted_items(count),
            )  # fmt: skip

        return local(
            "count", (1,), DType.INT64,
            lambda count: local("bar", (1,), x.dtype, lambda bar: scan(count, bar)),
        )  # fmt: skip


def _comparable(x: Expr) -> Expr:
    return x.astype(DType.INT32) if x.dtype is DType.BOOL else x


def order_of(x: npt.NDArray[Any], *, largest: bool) -> npt.NDArray[np.int64]:
    """The places of the elements of each row of *x*, sorted as :class:`TopPlaces` sorts them."""
    narrow = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
    _, ranks = np.unique(x.astype(np.float32) if narrow else x, return_inverse=True)
    ranks = ranks.reshape(x.shape)
    order: npt.NDArray[np.intp] = np.argsort(-ranks if largest else ranks, axis=-1, kind="stable")
    return order.astype(np.int64)
