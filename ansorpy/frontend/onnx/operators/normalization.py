"""Normalisations and softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate, widely
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, LayerNorm, Lrn, Reduce, ReduceKind, Shape, Softmax
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS", "axes_from", "log_softmax_over", "rms_normalization", "softmax"]


def batch_normalization(ctx: NodeContext) -> str | tuple[str, ...]:
    """``x * s + t``: ``s = scale / sqrt(var + epsilon)``, ``t = bias - mean * s``.

    In training, mean and variance are those of the data, and running ones are further results.
    Constants are combined in float64.
    """
    if not ctx.attr("spatial", 1):
        raise Unsupported("spatial=0", "export with an opset of 9 or later")
    old = ctx.opset < 14 and any(ctx.is_output_used(i) for i in range(1, 5))
    if old or ctx.attr("training_mode", 0):
        return _trained(ctx)
    if any(ctx.operand(n) not in ctx.builder.constants for n in range(1, 5)):
        of_scale, of_bias, of_mean, of_var = (_of_channels(ctx, n) for n in range(1, 5))
        x = ctx.cast(ctx.input(), ctx.type_of(of_scale).dtype)
        return ctx.cast(_scaled(ctx, x, of_mean, of_var, of_scale, of_bias), ctx.type().dtype)
    names = ("scale", "B", "mean", "var")
    scale, bias, mean, var = (
        np.asarray(ctx.constant(i, name), np.float64) for i, name in enumerate(names, 1)
    )
    factor = scale / np.sqrt(var + ctx.attr("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(ctx.shape()) - 2))
    scaled = ctx.apply(Fn.MUL, ctx.input(), ctx.literal(factor.reshape(shape)))
    return ctx.apply(Fn.ADD, scaled, ctx.literal((bias - mean * factor).reshape(shape)))


def _of_channels(ctx: NodeContext, index: int) -> str:
    """Operand *index*, a number for each channel, in at least float32."""
    dtype = ctx.type(index).dtype.of_sums
    rank = len(ctx.shape())
    channels = ctx.shape()[1:2] or (1,)  # a list is a single channel
    return ctx.reshape(ctx.cast(ctx.input(index), dtype), (*channels, *(1,) * (rank - 2)))


def _scaled(ctx: NodeContext, x: str, mean: str, var: str, scale: str, bias: str) -> str:
    """``(x - mean) * (scale / sqrt(var + epsilon)) + bias``."""
    epsilon = ctx.literal(float(ctx.attr("epsilon", 1e-5)), ctx.type_of(var).dtype)
    root = ctx.apply(Fn.SQRT, ctx.apply(Fn.ADD, var, epsilon))
    factor = ctx.apply(Fn.DIV, scale, root)
    return ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, ctx.apply(Fn.SUB, x, mean), factor), bias)


def _trained(ctx: NodeContext) -> tuple[str, ...]:
    """The data, normalised by their own mean and variance, then the running ones.

    Before opset 14, those of the data follow.
    """
    axes = tuple(d for d in range(len(ctx.shape())) if d != 1)
    scale, bias = (_of_channels(ctx, n) for n in (1, 2))
    x = ctx.cast(ctx.input(), ctx.type_of(scale).dtype)
    mean = _mean(ctx, x, axes)
    difference = ctx.apply(Fn.SUB, x, mean)
    var = _mean(ctx, ctx.apply(Fn.MUL, difference, difference), axes)
    result = ctx.cast(_scaled(ctx, x, mean, var, scale, bias), ctx.type().dtype)
    share = float(ctx.attr("momentum", 0.9))
    own, running = [], []
    for index, value in ((3, mean), (4, var)):
        dtype = ctx.type_of(value).dtype
        given, found = ctx.cast(ctx.input(index), dtype), ctx.reshape(value, ctx.shape(index))
        old = ctx.apply(Fn.MUL, given, ctx.literal(share, dtype))
        new = ctx.apply(Fn.MUL, found, ctx.literal(1.0 - share, dtype))
        running.append(ctx.cast(ctx.apply(Fn.ADD, old, new), ctx.type(index).dtype))
        own.append(ctx.cast(found, ctx.type(index).dtype))
    return (result, *running) if ctx.opset >= 14 else (result, *running, *own)


def layer_normalization(ctx: NodeContext) -> str | tuple[str, ...]:
    """Normalise over the axes from ``axis`` on, then scale and offset.

    Statistics are returned only if they are read; they are float32, whatever the operand is.
    """
    axes, epsilon = _trailing(ctx), float(ctx.attr("epsilon", 1e-5))
    result = ctx.plus(_times_scale(ctx, LayerNorm(axes, epsilon)), 2)
    if not ctx.is_output_used(1) and not ctx.is_output_used(2):
        return result
    wide = replace(ctx, wide=True)
    mean = _mean(wide, wide.operand(), axes)
    difference = wide.apply(Fn.SUB, wide.input(), mean)
    variance = _mean(wide, wide.apply(Fn.MUL, difference, difference), axes)
    root = wide.apply(Fn.SQRT, wide.apply(Fn.ADD, variance, wide.literal(epsilon)))
    statistics = (mean, wide.apply(Fn.RECIPROCAL, root))
    return result, *(ctx.cast(value, DType.FLOAT32) for value in statistics)


def rms_normalization(ctx: NodeContext) -> str:
    """``x / sqrt(mean(x ** 2) + epsilon)`` over the axes from ``axis`` on, then the scale."""
    return _times_scale(
        ctx, LayerNorm(_trailing(ctx), float(ctx.attr("epsilon", 1e-5)), centred=False)
    )


def _times_scale(ctx: NodeContext, norm: LayerNorm) -> str:
    """The normalised operand times the scale, which decides the type."""
    normal = ctx.cast(ctx.emit(norm, [ctx.input()]), ctx.type(1).dtype)
    return ctx.apply(Fn.MUL, normal, ctx.input(1))


def _trailing(ctx: NodeContext) -> Shape:
    """The axes from ``axis`` on; refuses operands and ``stash_type`` that are not supported."""
    ctx.require_float()
    _refuse_other_stash(ctx)
    return axes_from(ctx, -1)


def axes_from(ctx: NodeContext, default: int) -> Shape:
    """The axes of the operand from ``axis`` on."""
    rank = len(ctx.shape())
    return tuple(range(ctx.axis(ctx.attr("axis", default), rank), rank))


def _refuse_other_stash(ctx: NodeContext) -> None:
    if ctx.attr("stash_type", 1) != 1:
        raise Unsupported(f"stash_type={ctx.attr('stash_type', 1)}", "use float32, type 1")


def _mean(ctx: NodeContext, value: str, axes: Shape) -> str:
    total = ctx.emit(Reduce(ReduceKind.SUM, axes, True), [value])
    return ctx.divided(total, prod_of(ctx.shape()[a] for a in axes))


def instance_normalization(ctx: NodeContext) -> str:
    """Normalise each channel of each image separately, then scale and offset."""
    rank = len(ctx.shape())
    norm = LayerNorm(tuple(range(2, rank)), float(ctx.attr("epsilon", 1e-5)))
    channels = (ctx.shape()[1], *(1,) * (rank - 2))
    scale, offset = (ctx.reshape(ctx.input(i), channels) for i in (1, 2))
    scaled = ctx.apply(Fn.MUL, ctx.emit(norm, [ctx.input()]), scale)
    return ctx.apply(Fn.ADD, scaled, offset)


def group_normalization(ctx: NodeContext) -> str:
    """Normalise each group of channels of each image separately, then scale and offset.

    Before opset 21, scale and offset have a number for each group, later for each channel.
    """
    ctx.require_float()
    _refuse_other_stash(ctx)
    shape, groups = ctx.shape(), ctx.attr("num_groups", 0)
    batch, channels, *spatial = shape
    if groups < 1 or channels % groups:
        raise Unsupported(f"num_groups={groups}", f"it must divide the {channels} channels")
    split = (batch, groups, channels // groups, *spatial)
    norm = LayerNorm(tuple(range(2, len(split))), float(ctx.attr("epsilon", 1e-5)))
    value = ctx.emit(norm, [ctx.reshape(ctx.input(), split)])
    behind = (1,) * len(spatial)
    if ctx.opset < 21:
        own: Shape = (groups, 1, *behind)
    else:
        value, own = ctx.reshape(value, shape), (channels, *behind)
    scale, offset = (ctx.reshape(ctx.input(n), own) for n in (1, 2))
    return ctx.reshape(ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, value, scale), offset), shape)


def mean_variance_normalization(ctx: NodeContext) -> str:
    """``(x - mean) / (sqrt(variance) + 1e-9)`` over ``axes``."""
    ctx.require_float()
    axes = tuple(sorted(ctx.axes(ctx.ints("axes", (0, 2, 3)), len(ctx.shape()))))
    difference = ctx.apply(Fn.SUB, ctx.input(), _mean(ctx, ctx.operand(), axes))
    variance = _mean(ctx, ctx.apply(Fn.MUL, difference, difference), axes)
    root = ctx.apply(Fn.ADD, ctx.apply(Fn.SQRT, variance), ctx.literal(1e-9))
    return ctx.apply(Fn.DIV, difference, root)


def lp_normalization(ctx: NodeContext) -> str:
    """``x`` divided by its norm along an axis; 0 where the norm is 0."""
    ctx.require_float()
    x, p = ctx.input(), ctx.attr("p", 2)
    axis = ctx.axis(ctx.attr("axis", -1), len(ctx.shape()))
    if p not in (1, 2):
        raise Unsupported(f"p={p}", "use 1 or 2")
    sizes = ctx.apply(Fn.ABS, x) if p == 1 else ctx.apply(Fn.MUL, x, x)
    norm = ctx.emit(Reduce(ReduceKind.SUM, (axis,), True), [sizes])
    norm = norm if p == 1 else ctx.apply(Fn.SQRT, norm)
    nothing = ctx.apply(Fn.EQUAL, norm, ctx.literal(0.0))
    return ctx.apply(Fn.DIV, ctx.input(), ctx.apply(Fn.WHERE, nothing, ctx.literal(1.0), norm))


def lrn(ctx: NodeContext) -> str:
    """Local response normalisation across channels."""
    op = Lrn(ctx.attr("size", 1), ctx.attr("alpha", 1e-4), ctx.attr("beta", 0.75),
             ctx.attr("bias", 1.0))  # fmt: skip
    return ctx.emit(op, [ctx.input()])


def _softmax_axes(ctx: NodeContext) -> Shape:
    """The axes of softmax: only ``axis``, but all axes from ``axis`` on before opset 13."""
    if ctx.opset >= 13:
        return (ctx.axis(ctx.attr("axis", -1), len(ctx.shape())),)
    return axes_from(ctx, 1)


def softmax(ctx: NodeContext) -> str:
    """Softmax over one axis, or in old models jointly over all axes from ``axis`` on."""
    return ctx.emit(Softmax(_softmax_axes(ctx)), [ctx.input()])


def log_softmax(ctx: NodeContext) -> str:
    """The logarithm of a softmax."""
    return log_softmax_over(ctx, _softmax_axes(ctx))


def log_softmax_over(ctx: NodeContext, axes: Shape) -> str:
    """``(x - max) - log(sum(exp(x - max)))``, in which no exponential overflows.

    Over a single element, it is exactly 0, without the rounding of exp and log.
    """
    if all(ctx.shape()[axis] == 1 for axis in axes):
        return ctx.apply(Fn.SUB, ctx.input(), ctx.input())
    top = ctx.emit(Reduce(ReduceKind.MAX, axes, True), [ctx.input()])
    shifted = ctx.apply(Fn.SUB, ctx.input(), top)
    total = ctx.emit(Reduce(ReduceKind.SUM, axes, True), [ctx.apply(Fn.EXP, shifted)])
    return ctx.apply(Fn.SUB, shifted, ctx.apply(Fn.LOG, total))


OPERATORS: dict[str, Translate] = {
    "BatchNormalization": batch_normalization,
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": widely(log_softmax),
    "LpNormalization": widely(lp_normalization),
    "MeanVarianceNormalization": widely(mean_variance_normalization),
    "RMSNormalization": rms_normalization,
    "Softmax": softmax,
}
