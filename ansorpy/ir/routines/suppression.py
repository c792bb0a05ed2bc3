"""Non-maximum suppression: of boxes that overlap, only the one with the highest score is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ansorpy.arrays import Array
from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ReduceKind, Var, as_expr
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.loops import Buffer, For, ForKind, Stmt, Store
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.keys import key_of
from ansorpy.ir.routines.sorting import Items, sort_some, with_items
from ansorpy.ir.routines.statements import (
    add,
    any_of,
    at,
    in_blocks,
    let,
    local,
    loop,
    put,
    seq,
    when,
)
from ansorpy.ir.routines.top import order_of

__all__ = ["Suppression"]

_BLOCK = 16
"""Kept boxes that a candidate is compared with at a time."""


@dataclass(frozen=True)
class Suppression(Routine):
    """The boxes ``[batch, class, k]`` that are kept, by falling score, and -1 behind them.

    Inputs are boxes ``[batch, n, 4]``, scores ``[batch, class, n]``, and arrays of one number: how
    many boxes of a class are kept at most, above which share of their union two boxes overlap, and
    above which score boxes count (all do unless *has_limit*).  A box is two corners, or its centre
    and size if *is_centred*.
    """

    name: ClassVar[str] = "suppression"
    is_centred: bool = False
    has_limit: bool = False

    def body(self, inputs: Sequence[Buffer], output: Buffer) -> Stmt:
        scores, limit = inputs[1], inputs[4]
        batch, classes, n = scores.shape

        def of_class(b: Expr, c: Expr) -> Stmt:
            def found(items: Items) -> Stmt:
                def counted(state: Buffer) -> Stmt:
                    return seq(
                        put(state, 0, value=0),
                        self._candidates(items, state, scores, limit, b, c),
                        sort_some(items, at(state, 0)),
                        _select(items, state, inputs, output, b, c, self.is_centred),
                    )

                return local("state", (3,), DType.INT64, counted)

            return with_items(most(n), True, found)

        return loop(
            "b", batch,
            lambda b: loop("c", classes, lambda c: of_class(b, c), ForKind.PARALLEL),
            ForKind.PARALLEL,
        )  # fmt: skip

    def _candidates(
        self, items: Items, state: Buffer, scores: Buffer, limit: Buffer, b: Expr, c: Expr
    ) -> Stmt:
        """Collect the boxes that count, state 0 of them; each is overwritten unless it counts."""
        n = scores.shape[2]

        def add_one(i: Expr) -> Stmt:
            score = at(scores, b, c, i)
            counts = (score > at(limit, 0)).astype(DType.INT64) if self.has_limit else as_expr(1)
            added = items.put(0, at(state, 0), key_of(score, i, largest=True), i)
            return seq(added, add(state, 0, value=counts))

        def block(flag: Buffer, first: Expr) -> Stmt:
            each = loop("lane", _BLOCK, lambda lane: let("i", first + lane, add_one))
            return any_of(
                flag, _BLOCK, lambda lane: at(scores, b, c, first + lane) > at(limit, 0), each
            )

        if not self.has_limit:
            return loop("i", n, add_one)
        return local(
            "flag", (1,), DType.INT32,
            lambda flag: in_blocks(n, _BLOCK, partial(block, flag), add_one),
        )  # fmt: skip

    def evaluate(self, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
        boxes, scores, most_kept, overlap, limit = inputs
        found = np.full(shape, -1, np.int64)
        for b, c in np.ndindex(shape[:2]):
            own = scores[b, c]
            order = order_of(own[None], largest=True)[0]
            if self.has_limit:
                order = order[own[order] > limit[0]]
            corners = _corners(boxes[b], self.is_centred)
            kept: list[int] = []
            for place in order:
                if len(kept) >= min(int(most_kept[0]), shape[2]):
                    break
                if not (_shares(corners[place], corners[kept]) > overlap[0]).any():
                    kept.append(int(place))
            found[b, c, : len(kept)] = kept
        return found


@dataclass(frozen=True)
class _Selection:
    """The candidates of class *c* of batch *b*, sorted, of which those are kept that no kept one
    overlaps.

    ``state`` holds the number of candidates, the number of kept ones, and whether one of these
    overlaps the candidate.  ``kept`` and ``own`` have the coordinates and areas of boxes.
    """

    items: Items
    state: Buffer
    kept: Buffer
    own: Buffer
    inputs: Sequence[Buffer]
    output: Buffer
    b: Expr
    c: Expr
    is_centred: bool

    def run(self) -> Stmt:
        """Go through the candidates."""
        room, count = self.output.shape[2], at(self.state, 1)

        def clear(j: Expr) -> Stmt:
            return seq(*(put(self.kept, side, j, value=0.0) for side in range(5)))

        def behind(j: Expr) -> Stmt:
            return when(j >= count, put(self.output, self.b, self.c, j, value=-1))

        return seq(
            loop("j", self._blocks * _BLOCK, clear),
            put(self.state, 1, value=0),
            in_blocks(self.inputs[1].shape[2], _BLOCK, self._some, self._step),
            loop("j", room, behind),
        )

    @property
    def _blocks(self) -> AnyExtent:
        """Blocks of kept boxes at the sizes of this call."""
        return -(-self.output.shape[2] // _BLOCK)

    def _is_open(self, t: Expr) -> Expr:
        """Whether there is a candidate number *t*, and more may be kept."""
        wanted = minimum(at(self.inputs[2], 0), as_expr(self.output.shape[2]))
        return (t < at(self.state, 0)) & (at(self.state, 1) < wanted)

    def _some(self, first: Expr) -> Stmt:
        each = loop("t", _BLOCK, lambda lane: let("at", first + lane, self._step))
        return when(self._is_open(first), each)

    def _step(self, t: Expr) -> Stmt:
        return when(self._is_open(t), let("box", self.items.place(0, t), self._candidate))

    def _candidate(self, place: Expr) -> Stmt:
        return seq(
            *_box(self.inputs[0], self.own, self.b, place, self.is_centred),
            put(self.state, 2, value=0),
            loop("block", self._blocks, self._against),
            when(at(self.state, 2).equal(0), self._keep(place)),
        )

    def _against(self, block: Expr) -> Stmt:
        lane, count = Var("lane"), at(self.state, 1)
        j = block * _BLOCK + lane
        hit = (_overlap(self.own, self.kept, j) > at(self.inputs[3], 0)) & (j < count)
        asked = Store(self.state, (as_expr(2),), hit.astype(DType.INT64), ReduceKind.MAX)
        vector = For(lane, _BLOCK, ForKind.VECTORIZED, asked)
        return when((block * _BLOCK < count) & at(self.state, 2).equal(0), vector)

    def _keep(self, place: Expr) -> Stmt:
        count = at(self.state, 1)
        return seq(
            *(put(self.kept, side, count, value=at(self.own, side)) for side in range(5)),
            put(self.output, self.b, self.c, count, value=place),
            add(self.state, 1, value=1),
        )


def _select(
    items: Items, state: Buffer, inputs: Sequence[Buffer], output: Buffer, b: Expr, c: Expr,
    is_centred: bool,
) -> Stmt:  # fmt: skip
    blocks, dtype = -(-most(output.shape[2]) // _BLOCK), inputs[0].dtype

    def run(kept: Buffer, own: Buffer) -> Stmt:
        return _Selection(items, state, kept, own, inputs, output, b, c, is_centred).run()

    return local(
        "kept", (5, blocks * _BLOCK), dtype,
        lambda kept: local("own", (5,), dtype, partial(run, kept)),
    )  # fmt: skip


def _box(boxes: Buffer, own: Buffer, b: Expr, place: Expr, is_centred: bool) -> list[Stmt]:
    """Let *own* have the least and largest coordinates of a box, and its area."""
    values = [at(boxes, b, place, side) for side in range(4)]
    if is_centred:
        half = [value / 2 for value in values[2:]]
        low = [value - h for value, h in zip(values, half, strict=False)]
        high = [value + h for value, h in zip(values, half, strict=False)]
    else:
        low = [minimum(values[k], values[k + 2]) for k in range(2)]
        high = [maximum(values[k], values[k + 2]) for k in range(2)]
    made = [put(own, k, value=value) for k, value in enumerate((*low, *high))]
    area = (at(own, 2) - at(own, 0)) * (at(own, 3) - at(own, 1))
    return [*made, put(own, 4, value=area)]


def _overlap(own: Buffer, kept: Buffer, j: Expr) -> Expr:
    """The share of the union of two boxes that is in both; 0 for boxes without area."""
    sides = [
        minimum(at(own, k + 2), at(kept, k + 2, j)) - maximum(at(own, k), at(kept, k, j))
        for k in range(2)
    ]
    inside = maximum(sides[0], 0.0) * maximum(sides[1], 0.0)
    union = at(own, 4) + at(kept, 4, j) - inside
    return select(union > 0.0, inside / union, 0.0)


def _corners(boxes: Array, is_centred: bool) -> Array:
    """The least and largest coordinates of each box ``[n, 4]``."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if is_centred:
        half = second / boxes.dtype.type(2)
        return np.concatenate([first - half, first + half], axis=1)
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _shares(box: Array, others: Array) -> Array:
    """Of the union of a box with each of the others, the share that is in both."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    inside = np.maximum(sides, 0).prod(axis=1)
    union = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1) - inside
    shares: Array = np.zeros_like(union)
    np.divide(inside, union, out=shares, where=union > 0)
    return shares
