"""Sorting of keys in memory: by ranks, by merging runs, or by digits, as their number suggests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ansorpy.ir.builders import minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.loops import Buffer, If, Seq, Stmt
from ansorpy.ir.routines.keys import LARGEST, place_in
from ansorpy.ir.routines.statements import add, at, let, local, loop, put, seq, when

__all__ = ["Items", "sort", "sort_some", "with_items"]

_RANKED = 48
"""So many keys are sorted by comparing all pairs, which needs no branches."""
_MERGED = 300
"""So many keys are sorted by merging; counting the digits of fewer keys takes longer."""
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

    def put(self, row: int | Expr, at_: Expr, key: Expr, place: Expr) -> Stmt:
        """Store one item."""
        stored = put(self.keys, row, at_, value=key)
        return stored if self.places is None else seq(stored, put(self.places, row, at_, value=place))

    def move(self, source: int | Expr, from_: Expr, row: int | Expr, to: Expr) -> Stmt:
        """Copy the item *from_* of row *source* to *to* of another *row*."""
        place = as_expr(0) if self.places is None else at(self.places, source, from_)
        return self.put(row, to, at(self.keys, source, from_), place)

    def place(self, row: int | Expr, at_: Expr) -> Expr:
        """The place of an item, as int64."""
        if self.places is None:
            return place_in(at(self.keys, row, at_))
        return at(self.places, row, at_)

    def pad(self, count: Expr, extent: AnyExtent) -> Stmt:
        """Let the first row have items behind all others from number *count* to *extent*."""

        def item(i: Expr) -> Stmt:
            return when(i >= count, self.put(0, i, LARGEST, as_expr(0)))

        return loop("pad", extent, item)


def with_items(room: int, has_place: bool, body: Callable[[Items], Stmt]) -> Stmt:
    """*body* with memory for *room* items, and one more in each row that merging may read."""
    shape = (2, room + 1)

    def with_keys(keys: Buffer) -> Stmt:
        if has_place:
            return body(Items(keys, None, room))
        return local(
            "places", shape, DType.INT64, lambda places: body(Items(keys, places, room))
        )

    return local("keys", shape, DType.UINT64, with_keys)


def sort(items: Items, count: AnyExtent) -> Stmt:
    """Sort the first *count* items of the first row, in place; equal items keep their order."""
    if most(count) <= _RANKED:
        return _by_ranks(items, count)
    return _by_merging(items, count) if most(count) <= _MERGED else _by_digits(items, count)


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
    """The rank of an item is the number of items before it."""

    def is_before(j: Expr, i: Expr) -> Expr:
        a, b = at(items.keys, 0, j), at(items.keys, 0, i)
        return (a < b) | (a.equal(b) & (j < i))

    def item(rank: Buffer, i: Expr) -> Stmt:
        return seq(
            put(rank, 0, value=0),
            loop("other", count, lambda j: add(rank, 0, value=is_before(j, i).astype(DType.INT64))),
            let("to", at(rank, 0), lambda to: items.move(0, i, 1, to)),
        )

    moved = local(
        "rank", (1,), DType.INT64, lambda rank: loop("item", count, lambda i: item(rank, i))
    )
    return seq(moved, _back(items, count))


def _back(items: Items, count: AnyExtent) -> Stmt:
    return loop("back", count, lambda i: items.move(1, i, 0, i))


def _by_merging(items: Items, count: AnyExtent) -> Stmt:
    """Runs of 1, 2, 4 .. items are merged in pairs.  One loop goes over the items of all pairs.

    The item behind the last one is read where the second run of a pair is used up.
    """
    steps = max(most(count) - 1, 1).bit_length()
    steps += steps % 2  # so that the result is in the first row

    def one_pass(state: Buffer, step: Expr) -> Stmt:
        width, left, right, middle, end = (at(state, n) for n in range(5))

        def next_pair(to: Expr) -> Stmt:
            return when(
                to.equal(end),
                put(state, 1, value=to),
                put(state, 3, value=minimum(to + width, as_expr(count))),
                put(state, 2, value=middle),
                put(state, 4, value=minimum(middle + width, as_expr(count))),
            )

        def item(source: Expr, to: Expr) -> Stmt:
            is_left = (left < middle) & (
                (right >= end) | (at(items.keys, source, left) <= at(items.keys, source, right))
            )
            taken = is_left.astype(DType.INT64)

            def move(is_taken: Expr) -> Stmt:
                chosen = select(is_taken > 0, left, right)
                return seq(
                    let("from", chosen, lambda from_: items.move(source, from_, 1 - source, to)),
                    add(state, 1, value=is_taken),
                    add(state, 2, value=1 - is_taken),
                )

            return seq(next_pair(to), let("taken", taken, move))

        return seq(
            *(put(state, n, value=0) for n in (1, 2, 3, 4)),
            let("source", step % 2, lambda source: loop("to", count, lambda to: item(source, to))),
            put(state, 0, value=width * 2),
        )

    return local(
        "state", (5,), DType.INT64,
        lambda state: seq(
            *(items.put(row, as_expr(count), LARGEST, as_expr(0)) for row in (0, 1)),
            put(state, 0, value=1),
            loop("step", steps, lambda step: one_pass(state, step)),
        ),
    )  # fmt: skip


def _by_digits(items: Items, count: AnyExtent) -> Stmt:
    """Stable counting sorts by each digit of the keys, the lowest first."""
    digits = range(4, 8) if items.places is None else range(8)

    def digit(n: int, row: int, i: Expr) -> Expr:
        return (at(items.keys, row, i) // (1 << 8 * n) % _DIGIT).astype(DType.INT64)

    def count_one(starts: Buffer, n: int, i: Expr) -> Stmt:
        return let("digit", digit(n, 0, i), lambda d: add(starts, n - digits[0], d, value=1))

    def begin(starts: Buffer, total: Buffer, n: Expr, d: Expr) -> Stmt:
        def step(number: Expr) -> Stmt:
            return seq(put(starts, n, d, value=at(total, 0)), add(total, 0, value=number))

        return let("number", at(starts, n, d), step)

    def scatter(starts: Buffer, n: int, i: Expr) -> Stmt:
        place, row = n - digits[0], (n - digits[0]) % 2

        def item(d: Expr) -> Stmt:
            return let(
                "to", at(starts, place, d),
                lambda to: seq(items.move(row, i, 1 - row, to), put(starts, place, d, value=to + 1)),
            )  # fmt: skip

        return let("digit", digit(n, row, i), item)

    def sums(starts: Buffer, total: Buffer) -> Stmt:
        def of_digit(n: Expr) -> Stmt:
            return seq(
                put(total, 0, value=0), loop("d", _DIGIT, lambda d: begin(starts, total, n, d))
            )

        return loop("n", len(digits), of_digit)

    def passes(starts: Buffer) -> Sequence[Stmt]:
        return [
            loop("n", len(digits), lambda n: loop("d", _DIGIT, lambda d: put(starts, n, d, value=0))),
            loop("i", count, lambda i: Seq(tuple(count_one(starts, n, i) for n in digits))),
            local("total", (1,), DType.INT64, lambda total: sums(starts, total)),
            *(loop("i", count, partial(scatter, starts, n)) for n in digits),
        ]

    return local(
        "starts", (len(digits), _DIGIT), DType.INT64, lambda starts: seq(*passes(starts))
    )
