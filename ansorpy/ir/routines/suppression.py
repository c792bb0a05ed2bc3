"""Non-maximum suppression: of boxes that overlap, only the one with the highest score is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ansorpy.ir.builders import maximum, minimum, select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import most
from ansorpy.ir.loops import Buffer, ForKind, Stmt
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.routines.keys import key_of
from ansorpy.ir.routines.sorting import Items, sort_some, with_items
from ansorpy.ir.routines.statements import add, at, let, local, loop, put, seq, when

__all__ = ["Suppression"]

_BLOCK = 8
"""Kept boxes that a candidate is compared with before it is asked whether one overlaps it."""


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
                        loop("i", n, lambda i: self._candidate(items, state, scores, limit, b, c, i)),
                        sort_some(items, at(state, 0)),
                        self._select(items, state, inputs, output, b, c),
                    )

                return local("state", (3,), DType.INT64, counted)

            return with_items(most(n), True, found)

        return loop(
            "b", batch,
            lambda b: loop("c", classes, lambda c: of_class(b, c), ForKind.PARALLEL),
            ForKind.PARALLEL,
        )  # fmt: skip

    def _candidate(
        self, items: Items, state: Buffer, scores: Buffer, limit: Buffer, b: Expr, c: Expr, i: Expr
    ) -> Stmt:
        """Add box *i* to the candidates; it is overwritten by the next one unless it counts."""
        score = at(scores, b, c, i)
        added = items.put(0, at(state, 0), key_of(score, i, largest=True), i)
        if not self.has_limit:
            return seq(added, add(state, 0, value=1))
        counts = (score > at(limit, 0)).astype(DType.INT64)
        return seq(added, add(state, 0, value=counts))

    def _select(
        self, items: Items, state: Buffer, inputs: Sequence[Buffer], output: Buffer, b: Expr, c: Expr
    ) -> Stmt:
        """Go through the candidates, state 0 of them, and keep those that no kept one overlaps.

        State 1 counts those kept; state 2 says whether one overlaps the candidate.
        """
        boxes, _, most_kept, overlap, _ = inputs
        n, room = boxes.shape[1], most(output.shape[2])
        blocks = -(-room // _BLOCK)
        candidates, count, is_hit = (at(state, k) for k in range(3))
        wanted = minimum(at(most_kept, 0), as_expr(output.shape[2]))

        def keep(kept: Buffer, own: Buffer, place: Expr) -> Stmt:
            return seq(
                *(put(kept, side, count, value=at(own, side)) for side in range(5)),
                put(output, b, c, count, value=place),
                add(state, 1, value=1),
            )

        def against(kept: Buffer, own: Buffer, block: Expr) -> Stmt:
            def one(j: Expr) -> Stmt:
                hit = (_overlap(own, kept, j) > at(overlap, 0)) & (j < count)
                return add(state, 2, value=hit.astype(DType.INT64))

            each = loop(
                "j", _BLOCK, lambda j: let("kept", block * _BLOCK + j, one)
            )
            return when((block * _BLOCK < count) & is_hit.equal(0), each)

        def candidate(kept: Buffer, own: Buffer, place: Expr) -> Stmt:
            return seq(
                *_box(boxes, own, b, place, self.is_centred),
                put(state, 2, value=0),
                loop("block", blocks, lambda block: against(kept, own, block)),
                when(is_hit.equal(0), keep(kept, own, place)),
            )

        def run(kept: Buffer, own: Buffer) -> Stmt:
            def step(t: Expr) -> Stmt:
                return when(
                    (t < candidates) & (count < wanted),
                    let("box", items.place(0, t), lambda place: candidate(kept, own, place)),
                )

            def clear(j: Expr) -> Stmt:
                return seq(*(put(kept, side, j, value=0.0) for side in range(5)))

            return seq(
                loop("j", blocks * _BLOCK, clear),
                put(state, 1, value=0),
                loop("t", n, step),
                loop(
                    "j", output.shape[2],
                    lambda j: when(j >= count, put(output, b, c, j, value=-1)),
                ),
            )  # fmt: skip

        return local(
            "kept", (5, blocks * _BLOCK), boxes.dtype,
            lambda kept: local("own", (5,), boxes.dtype, lambda own: run(kept, own)),
        )  # fmt: skip

    def evaluate(
        self, inputs: Sequence[npt.NDArray[Any]], shape: tuple[int, ...]
    ) -> npt.NDArray[Any]:
        boxes, scores, most_kept, overlap, limit = inputs
        found = np.full(shape, -1, np.int64)
        for b, c in np.ndindex(shape[:2]):
            own = scores[b, c]
            order = np.argsort(-own, kind="stable")
            if self.has_limit:
                order = order[own[order] > limit[0]]
            corners = [_corners(box, self.is_centred) for box in boxes[b]]
            kept: list[int] = []
            for place in order:
                if len(kept) >= min(int(most_kept[0]), shape[2]):
                    break
                if all(not _share(corners[place], corners[k]) > overlap[0] for k in kept):
                    kept.append(int(place))
            found[b, c, : len(kept)] = kept
        return found


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


def _corners(box: npt.NDArray[Any], is_centred: bool) -> npt.NDArray[Any]:
    first, second = box[:2], box[2:]
    if is_centred:
        half = second / box.dtype.type(2)
        return np.concatenate([first - half, first + half])
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)])


def _share(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    inside = sides[0] * sides[1]
    union = np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - inside
    return float(inside / union) if union > 0 else 0.0
