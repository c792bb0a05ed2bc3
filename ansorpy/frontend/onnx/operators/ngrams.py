"""Counts of sequences of numbers (n-grams) in the rows of a matrix."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Expand, Fn, Gather, Reduce, ReduceKind
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import least, most

__all__ = ["OPERATORS"]

Numbers = NDArray[np.int64]


def tfidf_vectorizer(ctx: NodeContext) -> str:
    """How often each n-gram of the pool occurs in each row, in the column that it names.

    Mode IDF only tells whether it occurs.  But for mode TF, it is multiplied by its weight.

    Numbers of an n-gram may be apart by the same distance, up to ``max_skip_count`` beyond the
    next; each distance counts.
    """
    if ctx.attr("pool_strings", None):
        raise Unsupported("pool_strings", "encode texts as integers outside the network")
    mode = ctx.attr("mode", "TF")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise Unsupported(f"mode={mode}", "use TF, IDF or TFIDF")
    shape = ctx.shape()
    if not 1 <= len(shape) <= 2:
        raise Unsupported(f"input shape {shape}", "give rows of numbers")
    rows = ctx.reshape(ctx.cast(ctx.input(), DType.INT64), (1, *shape)[-2:])
    pool = _pool(ctx)
    counts = _in_columns(ctx, pool, [_counted(ctx, rows, grams) for grams in pool])
    weights: list[float] = ctx.attr("weights", [])
    value = ctx.cast(counts, DType.FLOAT32)
    if mode == "IDF":
        one, zero = (ctx.literal(v, DType.FLOAT32) for v in (1.0, 0.0))
        value = ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, zero, value), one, zero)
    width = ctx.number(ctx.type_of(value).shape[-1], "columns")
    if mode != "TF" and weights:
        columns = ctx.ints("ngram_indexes", ())
        if len(weights) != len(columns):
            raise Unsupported("weights", f"give one for each of the {len(columns)} n-grams")
        scales = np.zeros(width)
        scales[[*columns]] = weights
        value = ctx.apply(Fn.MUL, value, ctx.literal(scales, DType.FLOAT32))
    return ctx.reshape(value, (*shape[:-1], width))


def _pool(ctx: NodeContext) -> list[Numbers]:
    """The n-grams of the pool by their length, ``[number, length]``; none of those left out."""
    pool = np.asarray(ctx.attr("pool_int64s", []), np.int64)
    starts = [*ctx.ints("ngram_counts", ()), len(pool)]
    low, high = ctx.attr("min_gram_length", 1), ctx.attr("max_gram_length", 1)
    found = []
    for length, (first, end) in enumerate(zip(starts, starts[1:], strict=False), start=1):
        if first > end or (end - first) % length:
            raise Unsupported("ngram_counts", "give where the n-grams of each length start")
        grams = pool[first:end].reshape(-1, length)
        counted = low <= length <= high
        found.append(grams if counted else np.zeros((len(grams), 0), np.int64))
    return found


def _counted(ctx: NodeContext, rows: str, grams: Numbers) -> str | None:
    """How often each of *grams*, which are equally long, is in each row, as int32; None: never."""
    batch, width = ctx.type_of(rows).shape
    length = grams.shape[1]
    skips = range(ctx.attr("max_skip_count", 0) + 1) if length > 1 else range(1)
    totals = []
    for skip in skips:
        count = width - (length - 1) * (skip + 1)
        if not grams.size or most(count) < 1:
            continue
        if least(count) < 0:
            raise Unsupported(f"rows of {width}", "shorter rows than an n-gram; give larger sizes")
        same = []
        for place in range(length):
            part = ctx.slice(rows, {1: Cut(place * (skip + 1), count)})
            wanted = ctx.literal(grams[:, place], DType.INT64)
            same.append(ctx.apply(Fn.EQUAL, ctx.reshape(part, (batch, count, 1)), wanted))
        found = ctx.cast(reduce(lambda a, b: ctx.apply(Fn.AND, a, b), same), DType.INT32)
        totals.append(ctx.emit(Reduce(ReduceKind.SUM, (1,), False), [found]))
    return reduce(lambda a, b: ctx.apply(Fn.ADD, a, b), totals) if totals else None


def _in_columns(ctx: NodeContext, pool: list[Numbers], counts: list[str | None]) -> str:
    """The counts of the n-grams of *pool*, each in the column that ``ngram_indexes`` has for it."""
    columns = np.asarray(ctx.attr("ngram_indexes", []), np.int64)
    grams = sum(map(len, pool))
    if len(columns) != grams or len(np.unique(columns)) < grams or columns.min(initial=0) < 0:
        raise Unsupported("ngram_indexes", f"give {grams} different columns")
    width = int(columns.max(initial=-1)) + 1
    batch = ctx.shape()[0] if len(ctx.shape()) > 1 else 1
    parts, origin, first = [], np.full(width, -1, np.int64), 0
    start = 0
    for part, held in zip(pool, counts, strict=True):
        if held is not None:
            origin[columns[first : first + len(part)]] = np.arange(start, start + len(part))
            parts.append(held)
            start += len(part)
        first += len(part)
    if not parts:
        return ctx.emit(Expand((batch, width)), [ctx.literal(0, DType.INT32)])
    joined = ctx.concat(parts, 1)
    if np.array_equal(origin, np.arange(start)):
        return joined
    found = ctx.emit(Gather(1), [joined, ctx.literal(np.maximum(origin, 0), DType.INT64)])
    given = ctx.literal(origin >= 0, DType.BOOL)
    return ctx.apply(Fn.WHERE, given, found, ctx.literal(0, DType.INT32))


OPERATORS: dict[str, Translate] = {"TfIdfVectorizer": tfidf_vectorizer}
