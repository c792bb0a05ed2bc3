"""Attention with projections, caches and padding as onnxruntime has it."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.microsoft.quantized import number_or_row, product, zero_point
from ansorpy.frontend.onnx.operators.attention import rotated
from ansorpy.frontend.onnx.operators.heads import (
    Scores,
    Window,
    as_added,
    attended,
    merged_heads,
    split_heads,
)
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ir import Integers
from ansorpy.graph.ops import Expand, Fn, Gather, GatherElements, LayerNorm, MatMul, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent

__all__ = ["OPERATORS"]


def attention(ctx: NodeContext) -> tuple[str, ...]:
    """Self-attention of one operand, which is multiplied with queries', keys', values' weights."""
    if ctx.has_input(6):
        raise Unsupported("past_sequence_length", "let the cache grow by the new rows")
    projected = ctx.emit(MatMul(), [ctx.input(0), ctx.input(1)])
    return _self_attention(ctx, ctx.plus(projected, 2), mask=3, past=4, bias=5)


def qattention(ctx: NodeContext) -> tuple[str, ...]:
    """The same with quantized operand and weights."""
    scales = number_or_row(ctx, 4), number_or_row(ctx, 3)
    zero = zero_point(ctx, 6)
    projected = product(ctx, Integers(ctx.input(0), zero), 1, 7, *scales)
    projected = ctx.apply(Fn.ADD, projected, ctx.input(2))
    return _self_attention(ctx, projected, mask=5, past=8, bias=9)


def _self_attention(
    ctx: NodeContext, projected: str, *, mask: int, past: int, bias: int
) -> tuple[str, ...]:
    """Attention of the columns of *projected*: queries, keys and values beside each other."""
    if ctx.attr("past_present_share_buffer", 0):
        raise Unsupported("past_present_share_buffer=1", "let the cache grow by the new rows")
    if ctx.attr("do_rotary", 0):
        raise Unsupported("do_rotary=1", "rotate with an operator of its own")
    heads, columns = ctx.attr("num_heads", 0), ctx.type_of(projected).shape[-1]
    third = ctx.number(columns, "three parts") // 3
    sizes = ctx.ints("qkv_hidden_sizes", ()) or (third,) * 3
    q, k, v = (
        split_heads(ctx, part, heads, "num_heads") for part in _columns(ctx, projected, sizes)
    )
    present = ""
    if ctx.has_input(past):
        before = [ctx.slice(ctx.input(past), {0: Cut(n, 1)}) for n in (0, 1)]
        new = [ctx.reshape(x, (1, *ctx.type_of(x).shape)) for x in (k, v)]
        whole = [ctx.concat([old, x], 3) for old, x in zip(before, new, strict=True)]
        k, v = (ctx.reshape(x, ctx.type_of(x).shape[1:]) for x in whole)
    if ctx.is_output_used(1):
        present = ctx.concat([ctx.reshape(x, (1, *ctx.type_of(x).shape)) for x in (k, v)], 0)
    mixed = _attended(ctx, q, k, v, mask=mask, bias=bias)
    return (merged_heads(ctx, mixed), present) if present else (merged_heads(ctx, mixed),)


def _columns(ctx: NodeContext, value: str, sizes: Shape) -> list[str]:
    """The columns of *value*, cut into parts of *sizes*."""
    axis, parts, start = len(ctx.type_of(value).shape) - 1, [], 0
    for size in sizes:
        parts.append(ctx.slice(value, {axis: Cut(start, size)}))
        start += size
    return parts


def _attended(ctx: NodeContext, q: str, k: str, v: str, *, mask: int, bias: int) -> str:
    """Attention with a mask of keys, a bias of scores, and no look ahead if it is causal."""
    batch, _, queries, size = ctx.type_of(q).shape
    keys = ctx.type_of(k).shape[2]
    dtype = ctx.type_of(q).dtype
    masks = _key_mask(ctx, mask, (batch, queries, keys), dtype)
    if ctx.attr("unidirectional", 0):
        first = ctx.size(keys - queries, DType.INT64)
        kept = Window(causal=True).kept(ctx, queries, keys, first)
        masks += [as_added(ctx, one, dtype) for one in kept]
    if ctx.has_input(bias):
        masks.append(ctx.input(bias))
    scale = ctx.attr("scale", 0.0) or ctx.number(size, "heads") ** -0.5
    return attended(ctx, q, k, v, Scores(scale, masks=tuple(masks), guarded=False))


def _key_mask(
    ctx: NodeContext, index: int, extents: tuple[AnyExtent, AnyExtent, AnyExtent], dtype: DType
) -> list[str]:
    """Operand *index* in any of its forms as numbers to add to scores.

    *extents* are those of the batch, the queries and the keys.
    """
    batch, queries, keys = extents
    if not ctx.has_input(index):
        return []
    shape, mask = ctx.shape(index), ctx.cast(ctx.input(index), DType.INT64)
    if len(shape) == 1:
        kept = _between(ctx, mask, shape[0], batch, keys)
    else:
        if len(shape) == 4:
            mask = ctx.slice(mask, {2: Cut(keys - queries, queries), 3: Cut(0, keys)})
            shape = ctx.type_of(mask).shape
        wide = {2: (shape[0], 1, 1, shape[-1]), 3: (shape[0], 1, *shape[1:])}.get(len(shape), shape)
        kept = ctx.apply(Fn.LESS, ctx.literal(0, DType.INT64), ctx.reshape(mask, wide))
    dropped = float(ctx.attr("mask_filter_value", -10000.0))
    return [as_added(ctx, kept, dtype, dropped)]


def _between(
    ctx: NodeContext, ends: str, count: AnyExtent, batch: AnyExtent, keys: AnyExtent
) -> str:
    """Whether keys are before each text's end; or also from its start on, which is behind them."""
    places = ctx.places(keys)

    def column(part: int) -> str:
        return ctx.reshape(ctx.slice(ends, {0: Cut(part * batch, batch)}), (batch, 1, 1, 1))

    if count not in (batch, 2 * batch):
        raise Unsupported(f"a mask of {count} numbers", "give lengths, starts and ends, or a mask")
    inside = ctx.apply(Fn.LESS, places, column(0))
    if count == batch:
        return inside
    return ctx.apply(Fn.AND, inside, ctx.apply(Fn.LESS_EQUAL, column(1), places))


def multi_head_attention(ctx: NodeContext) -> tuple[str, ...]:
    """Attention of queries, keys and values, which may be packed, cached, and have a bias."""
    if ctx.has_input(8):
        raise Unsupported("past_sequence_length", "let caches grow by the new rows")
    if ctx.has_input(9) or ctx.is_output_used(3):
        raise Unsupported("cache_indirection or qk", "export without beam search")
    heads = ctx.attr("num_heads", 0)
    biases: list[str | None] = [None] * 3
    if ctx.has_input(3):
        q_size = ctx.shape(0)[-1] if len(ctx.shape(0)) == 3 else heads * ctx.shape(0)[-1]
        q_size = ctx.number(q_size, "queries")
        rest = ctx.number(ctx.shape(3)[0], "a bias") - 2 * q_size
        biases = [*_columns(ctx, ctx.input(3), (q_size, q_size, rest))]
    q, k, v = (_in_heads(ctx, part, heads, one) for part, one in zip(
        _unpacked(ctx), biases, strict=True))  # fmt: skip
    queries, keys = (ctx.type_of(x).shape[2] for x in (q, k))
    if ctx.attr("unidirectional", 0) and queries not in (1, keys):
        raise Unsupported("unidirectional=1", "give as many keys as queries, behind past ones")
    if ctx.has_input(6):
        k, v = (ctx.concat([ctx.input(n), x], 2) for n, x in ((6, k), (7, v)))
    return merged_heads(ctx, _attended(ctx, q, k, v, mask=4, bias=5)), k, v


def _unpacked(ctx: NodeContext) -> list[str]:
    """Queries, keys and values, of 3 axes or ``[batch, heads, rows, size]``."""
    packed = [n for n in (0, 1) if ctx.has_input(n) and len(ctx.shape(n)) == 5]
    if not packed:
        return [ctx.input(n) for n in range(3)]
    batch, rows, heads, parts, size = ctx.shape(packed[0])
    every = [
        ctx.reshape(ctx.slice(ctx.input(packed[0]), {3: Cut(n, 1)}), (batch, rows, heads * size))
        for n in range(ctx.number(parts, "packed operands"))
    ]
    return every if packed[0] == 0 else [ctx.input(0), *every]


def _in_heads(ctx: NodeContext, value: str, heads: int, bias: str | None) -> str:
    if len(ctx.type_of(value).shape) == 4:  # a cache
        return value
    value = value if bias is None else ctx.apply(Fn.ADD, value, bias)
    return split_heads(ctx, value, heads, "num_heads")


def group_query_attention(ctx: NodeContext) -> tuple[str, ...]:
    """Attention with few heads of keys, rotation, and caches that grow by the new rows."""
    _refuse_parts_of_group_query_attention(ctx)
    heads, kv_heads = ctx.attr("num_heads", 0), ctx.attr("kv_num_heads", 0)
    if ctx.has_input(1):
        parts = [ctx.input(n) for n in range(3)]
    else:
        size = ctx.number(ctx.shape(0)[-1], "packed operands") // (heads + 2 * kv_heads)
        sizes = (heads * size, kv_heads * size, kv_heads * size)
        parts = _columns(ctx, ctx.input(0), sizes)
    counts = ((heads, "num_heads"), (kv_heads, "kv_num_heads"), (kv_heads, "kv_num_heads"))
    q, k, v = (split_heads(ctx, part, *count) for part, count in zip(parts, counts, strict=True))
    if ctx.has_input(14):
        q, k = (_normed(ctx, x, n) for x, n in ((q, 14), (k, 15)))
    batch, _, rows, size = ctx.type_of(q).shape
    total = ctx.reshape(ctx.cast(ctx.input(5), DType.INT64), (ctx.shape(5)[0], 1, 1, 1))
    total = ctx.apply(Fn.ADD, total, ctx.literal(1, DType.INT64))
    first = ctx.apply(Fn.SUB, total, ctx.size(rows, DType.INT64))
    first = ctx.apply(Fn.MAX, first, ctx.literal(0, DType.INT64))  # where texts are filled up
    if ctx.attr("do_rotary", 0):
        q, k = (_turned(ctx, x, first) for x in (q, k))
    if ctx.has_input(3):
        k, v = (_grown(ctx, ctx.input(n), x, first) for n, x in ((3, k), (4, v)))
    mixed = attended(
        ctx, q, k, v, _group_scores(ctx, rows, ctx.type_of(k).shape[2], first, total, size)
    )
    return merged_heads(ctx, mixed), k, v


def _refuse_parts_of_group_query_attention(ctx: NodeContext) -> None:
    others = {12: "k_scale", 13: "v_scale"}
    for index, name in others.items():
        if ctx.has_input(index):
            raise Unsupported(name, "export without it")
    for name in ("sliding_window_cache", "qk_output"):
        if ctx.attr(name, 0) > 0:
            raise Unsupported(f"{name}=1", "export without it")
    if ctx.has_input(3) and _known_total(ctx) == ctx.shape(3)[2]:
        raise Unsupported("past_key", "it must have the past rows only, without room for new ones")


def _known_total(ctx: NodeContext) -> object:
    """The number of rows of the longest text, the new ones among them; None if a run tells it."""
    total = ctx.operand(6)
    known = ctx.known.get(total, ctx.builder.constants.get(total))
    return None if known is None else known.reshape(-1)[0]


def _group_scores(
    ctx: NodeContext, rows: AnyExtent, keys: AnyExtent, first: str, total: str, size: AnyExtent
) -> Scores:
    """Scores of keys up to each query, as far as its window reaches."""
    dtype, before = ctx.type().dtype, ctx.attr("local_window_size", -1)
    if ctx.attr("causal", 1):
        window = Window(causal=True, before=before - 1 if before > 0 else -1)
        kept = window.kept(ctx, rows, keys, first)
    else:
        kept = [ctx.apply(Fn.LESS, ctx.places(keys), total)]
    masks = [as_added(ctx, one, dtype) for one in kept]
    if ctx.has_input(10):
        masks.append(ctx.input(10))
    scale = ctx.attr("scale", 0.0) or ctx.number(size, "heads") ** -0.5
    return Scores(
        scale, ctx.attr("softcap", 0.0), tuple(masks), guarded=False, sink=_sink(ctx, dtype)
    )


def _sink(ctx: NodeContext, dtype: DType) -> str | None:
    """A score of each head that no key has; 0 if the softmax is only smooth."""
    if ctx.has_input(11):
        return ctx.reshape(ctx.input(11), (ctx.shape(11)[0], 1, 1))
    is_smooth = ctx.attr("smooth_softmax", 0) > 0
    return ctx.literal(np.zeros((1, 1, 1)), dtype) if is_smooth else None


def _normed(ctx: NodeContext, x: str, weight: int) -> str:
    """The rows of *x*, each divided by its root mean square, times the operand *weight*."""
    norm = LayerNorm((3,), float(ctx.attr("qk_norm_epsilon", 1e-6)), centred=False)
    return ctx.apply(Fn.MUL, ctx.emit(norm, [x]), ctx.input(weight))


def _turned(ctx: NodeContext, x: str, first: str) -> str:
    """*x* rotated by its rows' places, which are given or begin with *first*."""
    rows = ctx.type_of(x).shape[2]
    if ctx.has_input(9):
        places = ctx.reshape(ctx.input(9), (ctx.shape(9)[0], 1, ctx.shape(9)[1]))
    else:
        begin = ctx.reshape(first, (ctx.type_of(first).shape[0], 1, 1))
        places = ctx.apply(Fn.ADD, begin, ctx.places(rows))
    cos, sin = (ctx.emit(Gather(0), [ctx.input(n), places]) for n in (7, 8))
    turned = 2 * ctx.number(ctx.shape(7)[1], "a rotation")
    return rotated(ctx, x, cos, sin, turned, pairs=bool(ctx.attr("rotary_interleaved", 0)))


def _grown(ctx: NodeContext, past: str, new: str, first: str) -> str:
    """The rows of *past* before each text's own *first*, then those of *new*."""
    batch, heads, before, size = ctx.type_of(past).shape
    rows = ctx.type_of(new).shape[2]
    if batch == 1 and _known_total(ctx) == before + rows:  # the cache has no room
        return ctx.concat([past, new], 2)
    places = ctx.places(before + rows, 1)
    is_old = ctx.apply(Fn.LESS, places, first)
    limit = ctx.size(rows - 1, DType.INT64)
    zero = ctx.literal(0, DType.INT64)
    own = ctx.apply(Fn.MIN, ctx.apply(Fn.MAX, ctx.apply(Fn.SUB, places, first), zero), limit)
    whole = (batch, heads, before + rows, size)
    index = ctx.emit(Expand(whole), [own])
    held = ctx.concat([past, new], 2)  # its last rows are not read
    return ctx.apply(Fn.WHERE, is_old, held, ctx.emit(GatherElements(2), [new, index]))


def rotary_embedding(ctx: NodeContext) -> str:
    """Rows rotated by angles in a table, at places that are given or begin with a number."""
    if ctx.attr("scale", 1.0) != 1.0:
        raise Unsupported("scale", "multiply the tables by it; onnxruntime reads no scale")
    rows = ctx.shape()[-2]
    places = ctx.cast(ctx.input(1), DType.INT64)
    if len(ctx.shape(1)) == 1:
        places = ctx.apply(Fn.ADD, ctx.places(rows), places)
        places = ctx.reshape(places, (1, 1, rows))
    else:
        places = ctx.reshape(places, (ctx.shape(1)[0], 1, rows))
    cos, sin = (ctx.emit(Gather(0), [ctx.input(n), places]) for n in (2, 3))
    return _rotated_rows(ctx, cos, sin)


def multimodal_rotary_embedding(ctx: NodeContext) -> str:
    """The same where each row has three places: in time, height and width.

    Each column of the tables belongs to one of them; those of a kind are neighbours, or alternate.
    """
    half = ctx.number(ctx.shape(2)[1], "a rotation")
    sizes = np.asarray(ctx.ints("mrope_section", ()), np.int64)
    if len(sizes) != 3 or sizes.min() < 0 or sizes.sum() != half:
        raise Unsupported("mrope_section", f"give three numbers whose sum is {half}")
    which = np.repeat(np.arange(3), sizes)
    if ctx.attr("mrope_layout", 0):
        which = np.zeros(half, np.int64)
        for kind in (1, 2):
            which[kind : 3 * sizes[kind] : 3] = kind
    ctx.require_rank(1, 3)
    _, batch, rows = ctx.shape(1)
    places = [
        ctx.reshape(ctx.slice(ctx.input(1), {0: Cut(kind, 1)}), (batch, 1, rows))
        for kind in range(3)
    ]

    def angles(operand: int) -> str:
        found, *others = (ctx.emit(Gather(0), [ctx.input(operand), one]) for one in places)
        for kind, other in enumerate(others, 1):
            is_own = ctx.literal((which == kind)[None, None, None], DType.BOOL)
            found = ctx.apply(Fn.WHERE, is_own, other, found)
        return found

    return _rotated_rows(ctx, angles(2), angles(3))


def _rotated_rows(ctx: NodeContext, cos: str, sin: str) -> str:
    """The operand, ``[batch, rows, heads * size]`` or ``[batch, heads, rows, size]``, rotated by
    angles of which *cos* and *sin* are ``[batch, 1, rows, half]``."""
    shape, half = ctx.shape(), ctx.number(ctx.shape(2)[1], "a rotation")
    if ctx.attr("is_packed_batching", 0):
        raise Unsupported("is_packed_batching=1", "give texts as a batch")
    heads = ctx.attr("num_heads", 0) if ctx.attr("rotary_embedding_dim", 0) else 0
    x = ctx.input()
    if len(shape) == 3:
        columns = ctx.number(shape[2], "heads")
        x = split_heads(ctx, x, heads or columns // (2 * half), "num_heads")
    scale = float(ctx.attr("scale", 1.0))
    if scale != 1.0:
        cos, sin = (ctx.apply(Fn.MUL, part, ctx.literal(scale)) for part in (cos, sin))
    found = rotated(ctx, x, cos, sin, 2 * half, pairs=bool(ctx.attr("interleaved", 0)))
    return merged_heads(ctx, found) if len(shape) == 3 else found


def relative_position_bias(ctx: NodeContext) -> str:
    """``[1, heads, queries, keys]``: rows of a table, chosen by how far a key is from a query.

    Near distances have a row each; farther ones share rows, more of them the farther they are.
    Source: Raffel et al., Exploring the Limits of Transfer Learning (2020), section 2.1.
    """
    (queries,), (keys,) = ctx.extents(1, "query_length"), ctx.extents(2, "key_length")
    rows, heads = ctx.shape(0)
    both, farthest = bool(ctx.attr("is_bidirectional", 0)), ctx.attr("max_distance", 0)
    rows = ctx.number(rows, "a table") // (2 if both else 1)

    def whole(number: int) -> str:
        return ctx.literal(number, DType.INT64)

    ahead = ctx.apply(Fn.SUB, ctx.places(keys), ctx.places(queries, 1))
    behind = ctx.apply(Fn.NEG, ahead)
    size = ctx.apply(Fn.ABS, ahead) if both else ctx.apply(Fn.MAX, behind, whole(0))
    near = rows // 2
    part = ctx.apply(Fn.MAX, ctx.cast(size, DType.FLOAT32), ctx.literal(1.0, DType.FLOAT32))
    part = ctx.apply(Fn.LOG, ctx.apply(Fn.DIV, part, ctx.literal(float(near), DType.FLOAT32)))
    slope = ctx.literal((rows - near) / np.log(farthest / near), DType.FLOAT32)
    shared = ctx.cast(ctx.apply(Fn.MUL, part, slope), DType.INT64)
    shared = ctx.apply(Fn.MIN, ctx.apply(Fn.ADD, shared, whole(near)), whole(rows - 1))
    row = ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, size, whole(near)), size, shared)
    if both:
        is_ahead = ctx.cast(ctx.apply(Fn.LESS, whole(0), ahead), DType.INT64)
        row = ctx.apply(Fn.ADD, row, ctx.apply(Fn.MUL, is_ahead, whole(rows)))
    chosen = ctx.transpose(ctx.emit(Gather(0), [ctx.input(), row]), (2, 0, 1))
    return ctx.reshape(chosen, (1, heads, queries, keys))


OPERATORS: dict[str, Translate] = {
    "Attention": attention,
    "GroupQueryAttention": group_query_attention,
    "MRotaryEmbedding": multimodal_rotary_embedding,
    "MultiHeadAttention": multi_head_attention,
    "QAttention": qattention,
    "RelativePositionBias": relative_position_bias,
    "RotaryEmbedding": rotary_embedding,
}
