"""Normalisations and softmax."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.op import Fn, Lrn, Reduce, ReduceOp, Shape, Softmax

__all__ = ["OPERATORS"]


def batch_normalization(ctx: NodeContext) -> str:
    """``x * s + t``: ``s = scale / sqrt(var + epsilon)``, ``t = bias - mean * s``, in float64."""
    if ctx.attr("training_mode", 0) or any(ctx.is_output_used(i) for i in range(1, 5)):
        raise Unsupported("training_mode=1", "export the model for inference")
    if not ctx.attr("spatial", 1):
        raise Unsupported("spatial=0", "export with an opset of 9 or later")
    names = ("scale", "B", "mean", "var")
    scale, bias, mean, var = (
        np.asarray(ctx.constant(i, name), np.float64) for i, name in enumerate(names, 1)
    )
    factor = scale / np.sqrt(var + ctx.attr("epsilon", 1e-5))
    shape = (-1, *(1,) * (len(ctx.shape()) - 2))
    scaled = ctx.apply(Fn.MUL, ctx.input(), ctx.literal(factor.reshape(shape)))
    return ctx.apply(Fn.ADD, scaled, ctx.literal((bias - mean * factor).reshape(shape)))


def lrn(ctx: NodeContext) -> str:
    """Local response normalisation across channels."""
    op = Lrn(ctx.attr("size", 1), ctx.attr("alpha", 1e-4), ctx.attr("beta", 0.75),
             ctx.attr("bias", 1.0))  # fmt: skip
    return ctx.emit(op, [ctx.input()])


def _softmax_axes(ctx: NodeContext) -> Shape:
    """Before opset 13 everything from ``axis`` on is one axis; since then ``axis`` alone."""
    rank = len(ctx.shape())
    if ctx.opset >= 13:
        return (ctx.axis(ctx.attr("axis", -1), rank),)
    return tuple(range(ctx.axis(ctx.attr("axis", 1), rank), rank))


def softmax(ctx: NodeContext) -> str:
    """Softmax over one axis, or (old models) over all axes from ``axis`` on together."""
    return ctx.emit(Softmax(_softmax_axes(ctx)), [ctx.input()])


def log_softmax(ctx: NodeContext) -> str:
    """``(x - max) - log(sum(exp(x - max)))``: no exponential overflows."""
    axes = _softmax_axes(ctx)
    top = ctx.emit(Reduce(ReduceOp.MAX, axes, True), [ctx.input()])
    shifted = ctx.apply(Fn.SUB, ctx.input(), top)
    total = ctx.emit(Reduce(ReduceOp.SUM, axes, True), [ctx.apply(Fn.EXP, shifted)])
    return ctx.apply(Fn.SUB, shifted, ctx.apply(Fn.LOG, total))


OPERATORS = {
    "BatchNormalization": batch_normalization,
    "LRN": lrn,
    "LogSoftmax": log_softmax,
    "Softmax": softmax,
}
