"""Sorting of keys in memory: by ranks if they are few, else by digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Const, Expr, ExprLike, ReduceKind, Var, as_expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.loops import Buffer, For, ForKind, If, Stmt, Store
from ansorpy.ir.routines.keys import LARGEST, place_in
from ansorpy.ir.routines.statements import add, at, let, local, loop, put, seq, when

__all__ = ["Items", "sort", "sort_some", "with_items"]

_RANKED = 128
"""So many keys are sorted by comparing all pairs; counting the digits of fewer takes longer."""
_LANES = 8
"""Keys that are compared at a time."""
_DIGIT = 1 << 8
_PARTS = (64, 1024, 16384)
"""Numbers of keys for which :func:`sort_some` has code, besides the largest one."""


@dataclass(frozen=True)
class Items:
    """Two rows of *room* items: sorting moves them from one to the other and back.

    ``places`` is None if keys hold places (:func:`~ansorpy.ir.routines.keys.has_place`).
    """

    keys: Buffer
    places: Buffer | None
    room: int

    def put(self, row: ExprLike, at_: ExprLike, key: Expr, place: Expr) -> Stmt:
        """Store one item."""
        stored = put(self.keys, row, at_, value=key)
        if self.places is None:
            return stored
        return seq(stored, put(self.places, row, at_, value=place))

    def item(self, row: ExprLike, at_: ExprLike) -> tuple[Expr, Expr]:
        """The key of an item, and what :meth:`put` needs besides it."""
        place = as_expr(0) if self.places is None else at(self.places, row, at_)
        return at(self.keys, row, at_), place

    def move(self, source: ExprLike, from_: ExprLike, row: ExprLike, to: ExprLike) -> Stmt:
        """Copy the item *from_* of row *source* to *to* of another *row*."""
        return self.put(row, to, *self.item(source, from_))

    def place(self, row: ExprLike, at_: ExprLike) -> Expr:
        """The place of an item, as int64."""
        key, place = self.item(row, at_)
        return place_in(key) if self.places is None else place

    def pad(self, count: Expr, extent: AnyExtent) -> Stmt:
        """Let the first row have items behind all others from number *count* to *extent*."""

        def item(i: Expr) -> Stmt:
            key: Expr = LARGEST
            if self.places is None:  # keys differ, and those behind have the last places
                key = (i + 1).astype(DType.UINT64) + Const(2**64 - 1 - self.room, DType.UINT64)
            return when(i >= count, self.put(0, i, key, as_expr(0)))

        return loop("pad", extent, item)


def with_items(room: int, has_place: bool, body: Callable[[Items], Stmt]) -> Stmt:
    """*body* with memory for *room* items in each row, and for those that fill up a vector."""
    shape = (2, -(-room // _LANES) * _LANES)

    def with_keys(keys: Buffer) -> Stmt:
        if has_place:
            return body(Items(keys, None, room))
        return local("places", shape, DType.INT64, lambda places: body(Items(keys, places, room)))

    return local("keys", shape, DType.UINT64, with_keys)


def sort(items: Items, count: AnyExtent) -> Stmt:
    """Sort the first *count* items of the first row, in place; equal items keep their order."""
    return _by_ranks(items, count) if most(count) <= _RANKED else _by_digits(items, count)


def sort_some(items: Items, count: Expr) -> Stmt:
    """Sort the first *count* items of the first row; the work is in proportion to their number."""
    sizes = [part for part in _PARTS if part < items.room] + [items.room]
    found: Stmt | None = None
    for size in reversed(sizes):
        part = seq(items.pad(count, size), sort(items, size))
        found = part if found is None else If(count <= size, part, found)
    assert found is not None
    return found


def _by_ranks(items: Items, count: AnyExtent) -> Stmt:
    """The rank of an item is the number of items before it, which are counted in vectors."""
    blocks = (count + _LANES - 1) // _LANES

    def is_before(j: Expr, i: Expr) -> Expr:
        a, b = at(items.keys, 0, j), at(items.keys, 0, i)
        return a < b if items.places is None else (a < b) | (a.equal(b) & (j < i))

    def count_some(rank: Buffer, i: Expr, block: Expr) -> Stmt:
        lane = Var("lane")
        found = is_before(block * _LANES + lane, i).astype(DType.INT64)
        added = Store(rank, (as_expr(0),), found, ReduceKind.SUM)
        return For(lane, _LANES, ForKind.VECTORIZED, added)

    def item(rank: Buffer, i: Expr) -> Stmt:
        return seq(
            put(rank, 0, value=0),
            loop("block", blocks, lambda block: count_some(rank, i, block)),
            let("to", at(rank, 0), lambda to: items.move(0, i, 1, to)),
        )

    left = blocks * _LANES - count
    behind = loop("pad", left, lambda i: items.put(0, i + as_expr(count), LARGEST, as_expr(0)))
    moved = local(
        "rank", (1,), DType.INT64, lambda rank: loop("item", count, lambda i: item(rank, i))
    )
    back = loop("back", count, lambda i: items.move(1, i, 0, i))
    return seq(behind, moved, back) if most(left) else seq(moved, back)


def _by_digits(items: Items, count: AnyExtent) -> Stmt:
    """Stable counting sorts by each digit of the keys, the lowest first.

    Digits of places need none: items come in the order of their places.
    """
    digits = range(8) if items.places is not None else range(4, 8)

    def run(starts: Buffer) -> Stmt:
        def clear(n: Expr) -> Stmt:
            return loop("d", _DIGIT, lambda d: put(starts, n, d, value=0))

        passes = [_Pass(items, starts, n - digits[0], n) for n in digits]

        def count_one(i: Expr) -> Stmt:
            return seq(*(each.count(i) for each in passes))

        return seq(
            loop("n", len(digits), clear),
            loop("i", count, count_one),
            local("total", (1,), DType.INT64, lambda total: _sums(starts, total, len(digits))),
            *(loop("i", count, each.scatter) for each in passes),
        )

    return local("starts", (len(digits), _DIGIT), DType.INT64, run)


@dataclass(frozen=True)
class _Pass:
    """The sort by digit *n*, pass *number*: items move to where those of their digit begin."""

    items: Items
    starts: Buffer
    number: int
    n: int

    def _digit(self, row: int, i: Expr) -> Expr:
        key = at(self.items.keys, row, i)
        return (key // (1 << 8 * self.n) % _DIGIT).astype(DType.INT64)

    def count(self, i: Expr) -> Stmt:
        """Count the digit of item *i*."""
        return let("digit", self._digit(0, i), lambda d: add(self.starts, self.number, d, value=1))

    def scatter(self, i: Expr) -> Stmt:
        """Move item *i* to the other row."""
        row = self.number % 2

        def to(d: Expr, end: Expr) -> Stmt:
            moved = self.items.move(row, i, 1 - row, end)
            return seq(moved, add(self.starts, self.number, d, value=1))

        def item(d: Expr) -> Stmt:
            return let("to", at(self.starts, self.number, d), partial(to, d))

        return let("digit", self._digit(row, i), item)


def _sums(starts: Buffer, total: Buffer, digits: int) -> Stmt:
    """Replace the numbers of items with each value of each digit by the numbers before them."""

    def begin(n: Expr, d: Expr) -> Stmt:
        def step(number: Expr) -> Stmt:
            return seq(put(starts, n, d, value=at(total, 0)), add(total, 0, value=number))

        return let("number", at(starts, n, d), step)

    def of_digit(n: Expr) -> Stmt:
        return seq(put(total, 0, value=0), loop("d", _DIGIT, partial(begin, n)))

    return loop("n", digits, of_digit)
