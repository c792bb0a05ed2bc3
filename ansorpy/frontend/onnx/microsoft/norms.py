"""Normalisations of sums and of groups of channels, softmax behind a bias, BERT's embeddings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate, widely
from ansorpy.frontend.onnx.operators.activation import swish_of
from ansorpy.frontend.onnx.operators.normalization import axes_from, rms_normalization
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Expand, Fn, Gather, LayerNorm, Reduce, ReduceKind, Softmax
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def simplified_layer_normalization(ctx: NodeContext) -> str:
    """RMSNormalization, as onnxruntime called it before onnx had it."""
    _refuse_statistics(ctx, 1)
    return rms_normalization(ctx)


def skip_layer_normalization(ctx: NodeContext) -> tuple[str, ...]:
    """``layer_norm(input + skip + bias)``, and the sum as the last of four outputs."""
    return _skipped(ctx, centred=True, bias=4)


def skip_simplified_layer_normalization(ctx: NodeContext) -> tuple[str, ...]:
    """The same without subtracting the mean."""
    return _skipped(ctx, centred=False, bias=3)


def _skipped(ctx: NodeContext, *, centred: bool, bias: int) -> tuple[str, ...]:
    _refuse_statistics(ctx, 1, 2)
    total = ctx.apply(Fn.ADD, ctx.input(0), ctx.input(1))
    total = ctx.plus(total, bias)
    beta = ctx.input(3) if centred and ctx.has_input(3) else None
    normal = _normalised(ctx, total, ctx.input(2), beta, centred=centred)
    return normal, total, total, total


def _refuse_statistics(ctx: NodeContext, *outputs: int) -> None:
    if any(map(ctx.is_output_used, outputs)):
        raise Unsupported("output mean or inv_std_var", "remove the consumers of statistics")


def _normalised(
    ctx: NodeContext,
    value: str,
    scale: str,
    offset: str | None,
    *,
    centred: bool = True,
    epsilon: float = 1e-12,
) -> str:
    """*value* normalised over its last axis, scaled and offset; *epsilon* is the usual one."""
    axis = len(ctx.type_of(value).shape) - 1
    norm = LayerNorm((axis,), float(ctx.attr("epsilon", epsilon)), centred=centred)
    scaled = ctx.apply(Fn.MUL, ctx.emit(norm, [value]), scale)
    return scaled if offset is None else ctx.apply(Fn.ADD, scaled, offset)


def embed_layer_normalization(ctx: NodeContext) -> tuple[str, ...]:
    """The normalised sum of a word's, its position's and its segment's rows of three tables.

    The second output counts the words of each text that the mask keeps.
    """
    places = ctx.input(8) if ctx.has_input(8) else ctx.places(ctx.shape(0)[1])
    return _embedded(ctx, places, lambda _, value: value)


def quantized_embed_layer_normalization(ctx: NodeContext) -> tuple[str, ...]:
    """The same with tables, scale and offset in 8 bits; each has a scale and a zero point."""

    def real(operand: int, value: str) -> str:
        scale, zero = (ctx.reshape(ctx.input(operand + n), ()) for n in (6, 11))
        dtype = ctx.type_of(scale).dtype
        moved = ctx.apply(Fn.SUB, ctx.cast(value, dtype), ctx.cast(zero, dtype))
        return ctx.apply(Fn.MUL, moved, scale)

    return _embedded(ctx, ctx.places(ctx.shape(0)[1]), real)


def _embedded(ctx: NodeContext, places: str, real: Callable[[int, str], str]) -> tuple[str, ...]:
    """The sum, normalised; *real* makes numbers of a value that operand number holds."""
    rows = [(2, ctx.input(0)), (3, places)]
    if ctx.has_input(1) and ctx.has_input(4):
        rows.append((4, ctx.input(1)))
    total, *others = (real(n, ctx.emit(Gather(0), [ctx.input(n), which])) for n, which in rows)
    for other in others:
        total = ctx.apply(Fn.ADD, total, other)
    normal = _normalised(ctx, total, real(5, ctx.input(5)), real(6, ctx.input(6)))
    if ctx.has_input(7):
        counted = ctx.emit(
            Reduce(ReduceKind.SUM, (1,), False), [ctx.cast(ctx.input(7), DType.INT32)]
        )
    else:
        texts = ctx.shape(0)[:1]
        counted = ctx.emit(Expand(texts), [ctx.literal(np.zeros(1), DType.INT32)])
    return normal, counted, total


def group_norm(ctx: NodeContext) -> str:
    """Groups of channels normalised, scaled, offset, and perhaps times their sigmoid."""
    return _grouped(ctx, ctx.input())


def skip_group_norm(ctx: NodeContext) -> tuple[str, str]:
    """The same of ``x + skip + bias``, and that sum; *skip* may have one value for each channel."""
    total = ctx.apply(Fn.ADD, ctx.input(0), _of_channels(ctx, 3))
    if ctx.has_input(4):
        total = ctx.apply(Fn.ADD, total, _of_channels(ctx, 4))
    return _grouped(ctx, total), total


def _is_last(ctx: NodeContext) -> bool:
    return bool(ctx.attr("channels_last", 1))


def _of_channels(ctx: NodeContext, operand: int) -> str:
    """An operand that broadcasts to the image: ``[c]``, ``[n, c]``, or as many axes as it has."""
    value, rank = ctx.cast(ctx.input(operand), ctx.type().dtype), len(ctx.shape())
    shape = ctx.shape(operand)
    if len(shape) == rank:
        return value
    behind = (1,) * (rank - 2)
    spread = (*behind, shape[-1]) if _is_last(ctx) else (shape[-1], *behind)
    return ctx.reshape(value, (*(shape[:-1] or (1,)), *spread))


def _grouped(ctx: NodeContext, value: str) -> str:
    shape, groups = ctx.shape(), ctx.attr("groups", 1)
    rank = len(shape)
    place = rank - 1 if _is_last(ctx) else 1
    channels = shape[place]
    if groups < 1 or channels % groups != 0:
        raise Unsupported(f"groups={groups}", f"it must divide the {channels} channels")
    split = ctx.reshape(value, (*shape[:place], groups, channels // groups, *shape[place + 1 :]))
    # All axes but the batch's and that of groups.
    axes = tuple(d for d in range(1, rank + 1) if d != place)
    norm = LayerNorm(axes, float(ctx.attr("epsilon", 1e-5)))
    value = ctx.reshape(ctx.emit(norm, [split]), shape)
    value = ctx.apply(Fn.MUL, value, _of_channels(ctx, 1))
    value = ctx.apply(Fn.ADD, value, _of_channels(ctx, 2))
    if not ctx.attr("activation", 0):
        return value
    return swish_of(ctx, value)


def gated_rms_norm(ctx: NodeContext) -> str:
    """Groups of as many elements as the scale has, each divided by its root mean square and
    scaled, times the gate and its sigmoid."""
    *lead, columns = ctx.shape()
    (size,) = ctx.shape(1)
    if columns % size != 0:
        raise Unsupported(f"a scale of {size} elements", f"it must divide the {columns} columns")
    groups = ctx.reshape(ctx.input(), (*lead, columns // size, size))
    scaled = _normalised(ctx, groups, ctx.input(1), None, centred=False, epsilon=1e-5)
    gate = ctx.apply(Fn.MUL, ctx.input(2), ctx.apply(Fn.SIGMOID, ctx.input(2)))
    return ctx.apply(Fn.MUL, ctx.reshape(scaled, ctx.shape()), gate)


def bias_softmax(ctx: NodeContext) -> str:
    """The softmax of a sum, over all axes from one on."""
    total = ctx.apply(Fn.ADD, ctx.input(0), ctx.input(1))
    return ctx.emit(Softmax(axes_from(ctx, 1)), [total])


OPERATORS: dict[str, Translate] = {
    "BiasSoftmax": bias_softmax,
    "EmbedLayerNormalization": embed_layer_normalization,
    "GatedRMSNorm": widely(gated_rms_norm),
    "GroupNorm": group_norm,
    "QEmbedLayerNormalization": quantized_embed_layer_normalization,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "SkipGroupNorm": skip_group_norm,
    "SkipLayerNormalization": skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": skip_simplified_layer_normalization,
}
