"""Operators that move elements, in the forms that they had before onnx had them."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.operands import with_operands
from ansorpy.frontend.onnx.operators.constant import range_
from ansorpy.frontend.onnx.operators.gather import gather, gather_nd
from ansorpy.frontend.onnx.operators.movement import pad
from ansorpy.frontend.onnx.operators.places import trilu
from ansorpy.frontend.onnx.selection.sorts import unique
from ansorpy.frontend.onnx.unsupported import TooShort
from ansorpy.graph.ops import Fn, Gather, ReduceKind, Scatter
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import least

__all__ = ["OPERATORS"]

_LATEST = 18
"""The operator set whose forms of operators these have."""


def expand_dims(ctx: NodeContext) -> str:
    """An axis of one element is inserted."""
    shape = ctx.shape()
    (given,) = ctx.constant_ints(1, "axis")
    axis = ctx.axis(given, len(shape) + 1)
    return ctx.reshape(ctx.input(), (*shape[:axis], 1, *shape[axis:]))


def padded(ctx: NodeContext) -> str:
    """Pad as onnx's, whose amounts may be a row."""
    return pad(replace(ctx, opset=_LATEST))


def range_of(ctx: NodeContext) -> str:
    """``start``, ``start + delta``, .. below ``limit``; *delta* is 1 if it is left out."""
    if ctx.has_input(2):
        return range_(ctx)
    return range_(with_operands(ctx, {2: ctx.literal(1)}))


def unique_in_order(ctx: NodeContext) -> tuple[str, ...]:
    """The distinct elements in the order in which they first occur; where each went; how often
    each occurs."""
    found, _, went, counts = unique(with_operands(ctx, {}, sorted=0))
    return found, went, counts


def unfold(ctx: NodeContext) -> str:
    """Windows of ``size`` elements of an axis, ``step`` apart, along a new last axis."""
    shape, size, step = ctx.shape(), ctx.attr("size", 1), ctx.attr("step", 1)
    axis = ctx.axis(ctx.attr("dim", -1), len(shape))
    extent = ctx.number(shape[axis], "windows")
    if size > extent:
        raise TooShort(f"size={size}", f"the axis has {extent} elements", extent - size)
    count = (extent - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    found = ctx.emit(Gather(axis), [ctx.input(), ctx.literal(places, DType.INT64)])
    return ctx.move_axis(found, axis + 1, len(shape))


def ngram_repeat_block(ctx: NodeContext) -> str:
    """Scores of tokens, ``-inf`` where a token would complete n tokens that were there before."""
    n = ctx.attr("ngram_size", 1)
    (_, length), (_, tokens) = ctx.shape(0), ctx.shape(1)
    if least(length) < n:
        raise TooShort(f"ngram_size={n}", f"texts have {length} tokens", length - n)
    windows = length - n + 1
    same = [
        ctx.apply(Fn.EQUAL, *(ctx.slice(ctx.input(0), {1: Cut(start, size)})
                              for start, size in ((d, windows), (windows + d, 1))))
        for d in range(n - 1)
    ]  # fmt: skip
    after = ctx.slice(ctx.input(0), {1: Cut(n - 1, windows)})
    if same:
        is_last = reduce(lambda a, b: ctx.apply(Fn.AND, a, b), same)
        after = ctx.apply(Fn.WHERE, is_last, after, ctx.literal(-1, DType.INT64))
    ones = ctx.literal(np.ones((1, 1)), DType.INT32)
    hits = ctx.emit(Scatter(ReduceKind.SUM, 1, tokens), [after, ones])
    blocked = ctx.apply(Fn.LESS, ctx.literal(0, DType.INT32), hits)
    lowest = ctx.literal(-np.inf, ctx.type(1).dtype)
    return ctx.apply(Fn.WHERE, blocked, lowest, ctx.input(1))


OPERATORS: dict[str, Translate] = {
    "ExpandDims": expand_dims,
    "GatherND": gather_nd,
    "NGramRepeatBlock": ngram_repeat_block,
    "Pad": padded,
    "Range": range_of,
    "TorchEmbedding": gather,
    "Trilu": trilu,
    "UnfoldTensor": unfold,
    "Unique": unique_in_order,
}
