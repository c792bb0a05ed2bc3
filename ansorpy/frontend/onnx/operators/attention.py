"""The Attention and RotaryEmbedding operators (opset 23)."""

from __future__ import annotations

import math

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, dtype_of
from ansorpy.frontend.onnx.operators.heads import (
    Scores,
    Window,
    as_added,
    attended_and_scores,
    merged_heads,
    split_heads,
)
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Concat, Fn, Gather, Pad, PadMode
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent

__all__ = ["OPERATORS", "rotated"]


def attention(ctx: NodeContext) -> tuple[str, ...]:
    """Rows whose keys are all masked give 0.

    Differs: they are known by the NaN of their softmax, so beside a mask, other NaN gives 0, too.
    """
    ctx.require_float()
    q = _heads(ctx, 0, "q_num_heads")
    k, v = (_heads(ctx, n, "kv_num_heads") for n in (1, 2))
    if ctx.has_input(4) != ctx.has_input(5) or (ctx.has_input(4) and ctx.has_input(6)):
        raise Unsupported("past_key, past_value", "give both without nonpad_kv_seqlen, or none")
    if ctx.has_input(4):
        k, v = (ctx.concat([ctx.input(n), x], 2) for n, x in ((4, k), (5, v)))
    queries, keys = ctx.type_of(q).shape, ctx.type_of(k).shape
    precision = ctx.attr("softmax_precision", 0)
    scale: float | None = ctx.attr("scale", None)
    how = Scores(
        queries[3] ** -0.5 if scale is None else scale,
        ctx.attr("softcap", 0.0),
        (*_given_mask(ctx, keys[2]), *_masks_of_places(ctx, queries[2], keys[2])),
        dtype=dtype_of(precision) if precision else None,
    )
    mixed, scores = attended_and_scores(ctx, q, k, v, how)
    mixed = merged_heads(ctx, mixed) if len(ctx.shape()) == 3 else mixed
    mode = ctx.attr("qk_matmul_output_mode", 0)
    if not 0 <= mode < len(scores):
        raise Unsupported(f"qk_matmul_output_mode={mode}", f"use a number below {len(scores)}")
    return mixed, k, v, scores[mode]


def _heads(ctx: NodeContext, index: int, count: str) -> str:
    """Operand *index* as ``[batch, heads, rows, size]``."""
    value = ctx.input(index)
    if len(ctx.shape(index)) == 4:
        return value
    return split_heads(ctx, value, ctx.attr(count, 0), count)


def _given_mask(ctx: NodeContext, keys: AnyExtent) -> list[str]:
    """The mask operand as numbers to add to the scores; keys beyond its width are masked."""
    if not ctx.has_input(3):
        return []
    mask = ctx.input(3)
    if ctx.type(3).dtype is DType.BOOL:
        mask = as_added(ctx, mask, ctx.type().dtype)
    *lead, width = ctx.type_of(mask).shape
    if width != keys and ctx.is_less(width, keys):
        before, behind = (0,) * (len(lead) + 1), (*(0 for _ in lead), keys - width)
        mask = ctx.emit(Pad(before, behind, PadMode.CONSTANT, -math.inf), [mask])
    return [mask]


def _masks_of_places(ctx: NodeContext, queries: AnyExtent, keys: AnyExtent) -> list[str]:
    """Masks of keys outside a query's window, after it, or beyond the keys that count."""
    window = Window(
        bool(ctx.attr("is_causal", 0)),
        ctx.attr("left_window_size", -1),
        ctx.attr("right_window_size", -1),
    )
    first = ctx.size(ctx.shape(4)[2] if ctx.has_input(4) else 0, DType.INT64)
    kept = []
    if ctx.has_input(6):
        count = ctx.reshape(ctx.cast(ctx.input(6), DType.INT64), (ctx.shape(6)[0], 1, 1, 1))
        first = ctx.apply(Fn.SUB, count, ctx.size(queries, DType.INT64))
        kept = [ctx.apply(Fn.LESS, ctx.places(keys), count)]
    kept = [*window.kept(ctx, queries, keys, first), *kept]
    return [as_added(ctx, one, ctx.type().dtype) for one in kept]


def rotary_embedding(ctx: NodeContext) -> str:
    """Pairs of elements rotated by angles that depend on the position of their row."""
    shape = ctx.shape()
    heads = shape[1] if len(shape) == 4 else ctx.attr("num_heads", 0)
    if len(shape) not in (3, 4) or heads < 1 or (len(shape) == 3 and shape[2] % heads != 0):
        raise Unsupported(f"num_heads={heads}", f"it must divide rows of {shape}")
    x = ctx.input()
    if len(shape) == 3:
        x = ctx.reshape(x, (*shape[:2], heads, shape[2] // heads))
    turned = ctx.attr("rotary_embedding_dim", 0) or ctx.type_of(x).shape[-1]
    cos, sin = (_angles(ctx, n, len(shape) == 4) for n in (1, 2))
    pairs = bool(ctx.attr("interleaved", 0))
    return ctx.reshape(rotated(ctx, x, cos, sin, turned, pairs=pairs), shape)


def rotated(ctx: NodeContext, x: str, cos: str, sin: str, turned: int, *, pairs: bool) -> str:
    """The first *turned* elements of each row of *x* rotated, by halves or by neighbours (*pairs*).

    *cos* and *sin* have one element for each two of them, and broadcast to the other axes.

    Raises:
        Unsupported: The rows are shorter.
    """
    *lead, size = ctx.type_of(x).shape
    if ctx.is_less(size, turned):
        raise Unsupported(f"a rotation of {turned} elements", f"rows have {size}")
    half = turned // 2

    def cut(start: int, count: AnyExtent, step: int = 1) -> str:
        return ctx.slice(x, {len(lead): Cut(start, count, step)})

    a, b = (cut(0, half, 2), cut(1, half, 2)) if pairs else (cut(0, half), cut(half, half))
    parts = [
        ctx.apply(Fn.SUB, ctx.apply(Fn.MUL, a, cos), ctx.apply(Fn.MUL, b, sin)),
        ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, a, sin), ctx.apply(Fn.MUL, b, cos)),
    ]
    if pairs:
        columns = [ctx.reshape(part, (*lead, half, 1)) for part in parts]
        parts = [ctx.reshape(ctx.emit(Concat(len(lead) + 1), columns), (*lead, turned))]
    return ctx.concat([*parts, cut(turned, size - turned)], len(lead))


def _angles(ctx: NodeContext, index: int, heads_first: bool) -> str:
    """Cosines or sines for each row, with an axis of extent one for the heads."""
    value = ctx.input(index)
    ctx.require_rank(index, 2 if ctx.has_input(3) else 3)
    if ctx.has_input(3):
        value = ctx.emit(Gather(0), [value, ctx.input(3)])
    batch, rows, half = ctx.type_of(value).shape
    return ctx.reshape(value, (batch, 1, rows, half) if heads_first else (batch, rows, 1, half))


OPERATORS: dict[str, Translate] = {
    "Attention": attention,
    "RotaryEmbedding": rotary_embedding,
}
