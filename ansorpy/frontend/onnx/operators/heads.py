"""Heads of attention: how they are split, attended and merged, and the masks of their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Concat, Expand, Fn, MatMul, Repeat, Softmax
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent

__all__ = [
    "Scores", "Window", "as_added", "attended", "attended_and_scores", "merged_heads",
    "split_heads",
]  # fmt: skip


def split_heads(ctx: NodeContext, value: str, heads: int, what: str) -> str:
    """*value* ``[batch, rows, heads * size]`` as ``[batch, heads, rows, size]``."""
    shape = ctx.type_of(value).shape
    if len(shape) != 3 or heads < 1 or shape[2] % heads != 0:
        raise Unsupported(f"{what}={heads}", f"it must divide rows of {shape}")
    split = ctx.reshape(value, (*shape[:2], heads, shape[2] // heads))
    return ctx.transpose(split, (0, 2, 1, 3))


def merged_heads(ctx: NodeContext, value: str) -> str:
    """*value* ``[batch, heads, rows, size]`` as ``[batch, rows, heads * size]``."""
    batch, heads, rows, size = ctx.type_of(value).shape
    return ctx.reshape(ctx.transpose(value, (0, 2, 1, 3)), (batch, rows, heads * size))


@dataclass(frozen=True)
class Scores:
    """What happens to the products of queries and keys: scaled, capped, masked, normalised.

    Args:
        masks: Values that are added; rows of which all keys are masked give 0 if *guarded*.
        dtype: The type in which they are normalised; None for that of the queries.
        sink: A score of each head, ``[heads, 1, 1]``, which takes part in the softmax but has no
            value; None for none.
    """

    scale: float
    cap: float = 0.0
    masks: tuple[str, ...] = ()
    guarded: bool = True
    dtype: DType | None = None
    sink: str | None = None


def attended(ctx: NodeContext, q: str, k: str, v: str, how: Scores) -> str:
    """``softmax(q k') v`` of operands ``[batch, heads, rows, size]``; keys' heads are repeated."""
    return attended_and_scores(ctx, q, k, v, how)[0]


def attended_and_scores(
    ctx: NodeContext, q: str, k: str, v: str, how: Scores
) -> tuple[str, tuple[str, ...]]:
    """As :func:`attended`, and the scores once they are scaled, capped, masked and normalised."""
    queries, keys = ctx.type_of(q).shape, ctx.type_of(k).shape
    if queries[1] % keys[1] != 0:
        raise Unsupported("q_num_heads", f"{keys[1]} heads of keys do not divide {queries[1]}")
    if queries[1] != keys[1]:
        k, v = (ctx.emit(Repeat((1, queries[1] // keys[1], 1, 1)), [x]) for x in (k, v))
    dtype = ctx.type_of(q).dtype
    scale, turned = ctx.literal(how.scale, dtype), ctx.transpose(k, (0, 1, 3, 2))
    if dtype is DType.FLOAT16:  # the product of what is not scaled may overflow
        scaled = ctx.emit(MatMul(), [ctx.apply(Fn.MUL, q, scale), turned])
    else:
        scaled = ctx.apply(Fn.MUL, ctx.emit(MatMul(), [q, turned]), scale)
    capped = scaled
    if how.cap > 0:
        bounded = ctx.apply(Fn.TANH, ctx.apply(Fn.MUL, scaled, ctx.literal(1 / how.cap, dtype)))
        capped = ctx.apply(Fn.MUL, bounded, ctx.literal(how.cap, dtype))
    masked = capped
    for mask in how.masks:
        masked = ctx.apply(Fn.ADD, masked, mask)
    wide = ctx.cast(masked, how.dtype or dtype)
    guarded = how.guarded and bool(how.masks)
    weights = ctx.cast(_normalised(ctx, wide, how.sink, guarded=guarded), dtype)
    return ctx.emit(MatMul(), [weights, v]), (scaled, capped, masked, weights)


def _normalised(ctx: NodeContext, scores: str, sink: str | None, *, guarded: bool) -> str:
    """The softmax of each row of *scores*, which *sink* takes a part of."""
    if sink is None:
        return ctx.emit(Softmax((3,), guarded=guarded), [scores])
    *lead, keys = ctx.type_of(scores).shape
    column = ctx.emit(Expand((*lead, 1)), [ctx.cast(sink, ctx.type_of(scores).dtype)])
    weights = ctx.emit(Softmax((3,)), [ctx.emit(Concat(3), [scores, column])])
    return ctx.slice(weights, {3: Cut(0, keys)})


def as_added(ctx: NodeContext, kept: str, dtype: DType, dropped: float = -math.inf) -> str:
    """Numbers to add to scores: 0 where *kept*, else *dropped*."""
    held = ctx.builder.constants.get(kept)
    if held is not None:
        return ctx.literal(np.where(held, 0.0, dropped), dtype)
    return ctx.apply(Fn.WHERE, kept, ctx.literal(0.0, dtype), ctx.literal(dropped, dtype))


@dataclass(frozen=True)
class Window:
    """The keys that a query attends to: so many *before* and *behind* its own place; -1 for all.

    If *causal*, it attends to none behind.
    """

    causal: bool = False
    before: int = -1
    behind: int = -1

    def kept(self, ctx: NodeContext, queries: AnyExtent, keys: AnyExtent, first: str) -> list[str]:
        """``[.., queries, keys]``: whether keys are inside; nothing if all are.

        *first* is the place of the first query among the keys, and broadcasts to the result.
        """
        start = ctx.builder.constants.get(first)
        if isinstance(queries, int) and isinstance(keys, int) and start is not None:
            places = start.astype(np.int64) + np.arange(queries)[:, None]
            return self._known(ctx, places - np.arange(keys))
        place = ctx.apply(Fn.ADD, ctx.places(queries, 1), first)
        distance = ctx.apply(Fn.SUB, place, ctx.places(keys))
        conditions = []
        if self._least is not None:
            limit = ctx.literal(self._least, DType.INT64)
            conditions.append(ctx.apply(Fn.LESS_EQUAL, limit, distance))
        if self.before >= 0:
            limit = ctx.literal(self.before, DType.INT64)
            conditions.append(ctx.apply(Fn.LESS_EQUAL, distance, limit))
        return [reduce(lambda a, b: ctx.apply(Fn.AND, a, b), conditions)] if conditions else []

    @property
    def _least(self) -> int | None:
        """How far a query must be behind a key at least."""
        limits = [0] * self.causal + [-self.behind] * (self.behind >= 0)
        return max(limits, default=None)

    def _known(self, ctx: NodeContext, distance: NDArray[np.int64]) -> list[str]:
        kept = np.ones(distance.shape, bool)
        if self._least is not None:
            kept &= distance >= self._least
        if self.before >= 0:
            kept &= distance <= self.before
        return [] if kept.all() else [ctx.literal(kept, DType.BOOL)]
