"""Losses of classifiers, which compare scores ``[N, C, ...]`` with classes ``[N, ...]``."""

from __future__ import annotations

from dataclasses import replace

from ansorpy.frontend.onnx.context import NodeContext, Translate, widely
from ansorpy.frontend.onnx.operators.normalization import log_softmax_over
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Gather, GatherElements, Reduce, ReduceKind
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS"]


def negative_log_likelihood_loss(ctx: NodeContext) -> str:
    """The negated score of each class, weighted, and their sum or mean."""
    return _loss(ctx, ctx.input())


def softmax_cross_entropy_loss(ctx: NodeContext) -> tuple[str, ...]:
    """The loss of the logarithms of softmaxes, which are the second output."""
    wide, dtype = replace(ctx, wide=True), ctx.type().dtype
    logs = log_softmax_over(wide, (1,))
    loss = ctx.cast(_loss(wide, logs), dtype)
    return (loss, ctx.cast(logs, dtype)) if ctx.is_output_used(1) else (loss,)


def _loss(ctx: NodeContext, scores: str) -> str:
    """The loss of *scores*; a mean is that of the weights of the classes that occur."""
    classes = ctx.cast(ctx.input(1), DType.INT64)
    shape, dtype = ctx.shape(1), ctx.type().dtype
    picked = ctx.emit(GatherElements(1), [scores, ctx.reshape(classes, (shape[0], 1, *shape[1:]))])
    loss = ctx.apply(Fn.NEG, ctx.reshape(picked, shape))
    weights = ctx.emit(Gather(0), [ctx.input(2), classes]) if ctx.has_input(2) else None
    ignored: int | None = ctx.attr("ignore_index", None)
    if ignored is not None:
        left_out = ctx.apply(Fn.EQUAL, classes, ctx.literal(ignored, DType.INT64))
        kept = ctx.literal(1, dtype) if weights is None else weights
        weights = ctx.apply(Fn.WHERE, left_out, ctx.literal(0, dtype), kept)
        # The score at an ignored place may be infinite or NaN.
        loss = ctx.apply(Fn.WHERE, left_out, ctx.literal(0, dtype), loss)
    if weights is not None:
        loss = ctx.apply(Fn.MUL, loss, weights)
    return _reduced(ctx, loss, weights)


def _reduced(ctx: NodeContext, loss: str, weights: str | None) -> str:
    reduction, axes = ctx.attr("reduction", "mean"), tuple(range(len(ctx.shape(1))))
    if reduction not in ("none", "sum", "mean"):
        raise Unsupported(f"reduction={reduction}", "use one of none, sum, mean")
    if reduction == "none":
        return loss
    total = ctx.emit(Reduce(ReduceKind.SUM, axes, False), [loss])
    if reduction == "sum":
        return total
    if weights is None:
        return ctx.divided(total, prod_of(ctx.shape(1)))
    return ctx.apply(Fn.DIV, total, ctx.emit(Reduce(ReduceKind.SUM, axes, False), [weights]))


OPERATORS: dict[str, Translate] = {
    "NegativeLogLikelihoodLoss": widely(negative_log_likelihood_loss),
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy_loss,
}
