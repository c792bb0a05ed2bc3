"""The Attention and RotaryEmbedding operators (opset 23)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported
from ansorpy.graph.ops import Concat, Fn, Gather, MatMul, Pad, PadMode, Repeat, Shape, Softmax
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, dims_of

__all__ = ["OPERATORS"]


def attention(ctx: NodeContext) -> tuple[str, ...]:
    """Supports 3-D and 4-D operands, grouped heads, caches, masks, causal and windowed attention.

    Rows whose keys are all masked give 0.
    """
    _refuse(ctx)
    q = _heads(ctx, 0, "q_num_heads")
    k, v = (_heads(ctx, n, "kv_num_heads") for n in (1, 2))
    if ctx.has_input(4):
        k, v = (ctx.concat([ctx.input(n), x], 2) for n, x in ((4, k), (5, v)))
    present = k, v
    queries, keys = _extents(ctx, q), _extents(ctx, k)
    if queries[1] % keys[1] != 0:
        raise Unsupported("q_num_heads", f"{keys[1]} heads of keys do not divide {queries[1]}")
    if queries[1] != keys[1]:
        k, v = (ctx.emit(Repeat((1, queries[1] // keys[1], 1, 1)), [x]) for x in (k, v))
    scores = ctx.emit(MatMul(), [q, ctx.transpose(k, (0, 1, 3, 2))])
    scale = ctx.attr("scale", 0.0) or queries[3] ** -0.5
    scores = ctx.apply(Fn.MUL, scores, ctx.literal(scale))
    cap = ctx.attr("softcap", 0.0)
    if cap > 0:
        bounded = ctx.apply(Fn.TANH, ctx.apply(Fn.MUL, scores, ctx.literal(1 / cap)))
        scores = ctx.apply(Fn.MUL, bounded, ctx.literal(cap))
    masks = [*_given_mask(ctx, keys[2]), *_window(ctx, queries[2], keys[2])]
    for mask in masks:
        scores = ctx.apply(Fn.ADD, scores, mask)
    weights = ctx.emit(Softmax((3,), guarded=bool(masks)), [scores])
    mixed = ctx.emit(MatMul(), [weights, v])
    if len(ctx.shape()) == 3:
        batch, heads, rows, size = _extents(ctx, mixed)
        mixed = ctx.reshape(ctx.transpose(mixed, (0, 2, 1, 3)), (batch, rows, heads * size))
    return mixed, *present


def _refuse(ctx: NodeContext) -> None:
    ctx.require_float()
    if ctx.is_output_used(3):
        raise Unsupported("output qk_matmul_output", "remove the consumer of the scores")
    if ctx.has_input(6):
        raise Unsupported("nonpad_kv_seqlen", "give the lengths as a mask")
    if ctx.has_input(4) != ctx.has_input(5):
        raise Unsupported("past_key, past_value", "give both or none")


def _extents(ctx: NodeContext, value: str) -> Shape:
    return ctx.builder.types[value].shape


def _heads(ctx: NodeContext, index: int, count: str) -> str:
    """Operand *index* as ``[batch, heads, rows, size]``."""
    shape = ctx.shape(index)
    if len(shape) == 4:
        return ctx.input(index)
    heads = ctx.attr(count, 0)
    if len(shape) != 3 or heads < 1 or shape[2] % heads != 0:
        raise Unsupported(f"{count}={heads}", f"it must divide rows of {shape}")
    split = ctx.reshape(ctx.input(index), (*shape[:2], heads, shape[2] // heads))
    return ctx.transpose(split, (0, 2, 1, 3))


def _given_mask(ctx: NodeContext, keys: AnyExtent) -> list[str]:
    """The mask operand as numbers to add to the scores; keys beyond its width are masked."""
    if not ctx.has_input(3):
        return []
    dtype, mask = ctx.type().dtype, ctx.input(3)
    held = ctx.builder.constants.get(mask)
    if ctx.type(3).dtype is DType.BOOL:
        if held is not None:
            mask = ctx.literal(np.where(held, 0.0, -math.inf), dtype)
        else:
            taken, left = ctx.literal(0.0, dtype), ctx.literal(-math.inf, dtype)
            mask = ctx.apply(Fn.WHERE, mask, taken, left)
    *lead, width = _extents(ctx, mask)
    if width != keys and ctx.is_less(width, keys):
        before, behind = (0,) * (len(lead) + 1), (*(0 for _ in lead), keys - width)
        mask = ctx.emit(Pad(before, behind, PadMode.CONSTANT, -math.inf), [mask])
    return [mask]


def _window(ctx: NodeContext, queries: AnyExtent, keys: AnyExtent) -> list[str]:
    """A mask of keys that are outside a query's window, or after it if attention is causal."""
    before, behind = ctx.attr("left_window_size", -1), ctx.attr("right_window_size", -1)
    past = ctx.shape(4)[2] if ctx.has_input(4) else 0
    if dims_of([queries, keys, past]):
        return _computed_window(ctx, queries, keys, past)
    place = np.arange(queries)[:, None] + past
    key = np.arange(keys)
    kept = np.ones((queries, keys), bool)
    if ctx.attr("is_causal", 0):
        kept &= key <= place
    if before >= 0:
        kept &= place - key <= before
    if behind >= 0:
        kept &= key - place <= behind
    return [] if kept.all() else [ctx.literal(np.where(kept, 0.0, -math.inf))]


def _computed_window(
    ctx: NodeContext, queries: AnyExtent, keys: AnyExtent, past: AnyExtent
) -> list[str]:
    """:func:`_window` for extents that depend on sizes, computed at run time."""
    before, behind = ctx.attr("left_window_size", -1), ctx.attr("right_window_size", -1)
    place = ctx.apply(Fn.ADD, ctx.places(queries, 1), ctx.size(past, DType.INT64))
    distance = ctx.apply(Fn.SUB, place, ctx.places(keys))
    kept = []
    if ctx.attr("is_causal", 0):
        kept.append(ctx.apply(Fn.LESS_EQUAL, ctx.literal(0, DType.INT64), distance))
    if before >= 0:
        kept.append(ctx.apply(Fn.LESS_EQUAL, distance, ctx.literal(before, DType.INT64)))
    if behind >= 0:
        kept.append(ctx.apply(Fn.LESS_EQUAL, ctx.literal(-behind, DType.INT64), distance))
    if not kept:
        return []
    inside = reduce(lambda a, b: ctx.apply(Fn.AND, a, b), kept)
    return [ctx.apply(Fn.WHERE, inside, ctx.literal(0.0), ctx.literal(-math.inf))]


def rotary_embedding(ctx: NodeContext) -> str:
    """Pairs of elements rotated by angles that depend on the position of their row."""
    shape = ctx.shape()
    heads = shape[1] if len(shape) == 4 else ctx.attr("num_heads", 0)
    if len(shape) not in (3, 4) or heads < 1 or (len(shape) == 3 and shape[2] % heads != 0):
        raise Unsupported(f"num_heads={heads}", f"it must divide rows of {shape}")
    x = ctx.input()
    if len(shape) == 3:
        x = ctx.reshape(x, (*shape[:2], heads, shape[2] // heads))
    *lead, size = _extents(ctx, x)
    turned = ctx.attr("rotary_embedding_dim", 0) or size
    cos, sin = (_angles(ctx, n, len(shape) == 4) for n in (1, 2))
    pairs = bool(ctx.attr("interleaved", 0))
    half = turned // 2

    def cut(start: int, stop: int, step: int = 1) -> str:
        return ctx.slice(x, {len(lead): Cut.of(range(start, stop, step))})

    a, b = (cut(0, turned, 2), cut(1, turned, 2)) if pairs else (cut(0, half), cut(half, turned))
    parts = [
        ctx.apply(Fn.SUB, ctx.apply(Fn.MUL, a, cos), ctx.apply(Fn.MUL, b, sin)),
        ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, a, sin), ctx.apply(Fn.MUL, b, cos)),
    ]
    if pairs:
        columns = [ctx.reshape(part, (*lead, half, 1)) for part in parts]
        parts = [ctx.reshape(ctx.emit(Concat(len(lead) + 1), columns), (*lead, turned))]
    whole = ctx.concat([*parts, cut(turned, size)], len(lead))
    return ctx.reshape(whole, shape)


def _angles(ctx: NodeContext, index: int, heads_first: bool) -> str:
    """Cosines or sines for each row, with an axis of extent one for the heads."""
    value = ctx.input(index)
    ctx.require_rank(index, 2 if ctx.has_input(3) else 3)
    if ctx.has_input(3):
        value = ctx.emit(Gather(0), [value, ctx.input(3)])
    batch, rows, half = _extents(ctx, value)
    return ctx.reshape(value, (batch, 1, rows, half) if heads_first else (batch, rows, 1, half))


OPERATORS: dict[str, Callable[[NodeContext], str | tuple[str, ...]]] = {
    "Attention": attention,
    "RotaryEmbedding": rotary_embedding,
}
