"""What classical models share: their domain, transforms of scores, and labels of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import ArgReduce, Fn, Gather, Reduce, ReduceKind, Softmax
from ansorpy.ir.dtypes import DType

__all__ = ["DOMAIN", "TRANSFORMS", "class_labels", "columns_of", "labelled", "transformed"]

DOMAIN = "ai.onnx.ml"


def columns_of(ctx: NodeContext) -> str:
    """The first operand as a matrix of floats: rows are samples, columns are features."""
    shape, dtype = ctx.shape(), ctx.type().dtype
    value = ctx.cast(ctx.input(), dtype if dtype.is_float else DType.FLOAT32)
    if len(shape) == 1:
        return ctx.reshape(value, (1, *shape))
    ctx.require_rank(0, 2)
    return value


def _softmax_zero(ctx: NodeContext, scores: str) -> str:
    """The softmax over the scores that are not 0; these stay 0."""
    dtype = ctx.type_of(scores).dtype
    zero = ctx.literal(0, dtype)
    top = ctx.emit(Reduce(ReduceKind.MAX, (1,), True), [scores])
    raised = ctx.apply(Fn.EXP, ctx.apply(Fn.SUB, scores, top))
    kept = ctx.apply(Fn.WHERE, ctx.apply(Fn.EQUAL, scores, zero), zero, raised)
    return ctx.apply(Fn.DIV, kept, ctx.emit(Reduce(ReduceKind.SUM, (1,), True), [kept]))


def _probit(ctx: NodeContext, scores: str) -> str:
    """The quantiles of the normal distribution at *scores*, to about 0.2 %.

    Paper: Winitzki: A handy approximation for the error function and its inverse (2008), with the
    constant of onnx's reference and onnxruntime.
    """
    dtype = ctx.type_of(scores).dtype
    curve = 0.147

    def number(value: float) -> str:
        return ctx.literal(value, dtype)

    one, half = number(1.0), number(0.5)
    centred = ctx.apply(Fn.SUB, ctx.apply(Fn.MUL, scores, number(2.0)), one)
    product = ctx.apply(Fn.MUL, ctx.apply(Fn.SUB, one, centred), ctx.apply(Fn.ADD, one, centred))
    log = ctx.apply(Fn.LOG, product)
    base = ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, log, half), number(2 / (np.pi * curve)))
    square = ctx.apply(Fn.SUB, ctx.apply(Fn.MUL, base, base),
                       ctx.apply(Fn.MUL, log, number(1 / curve)))  # fmt: skip
    inner = ctx.apply(Fn.SUB, ctx.apply(Fn.SQRT, square), base)
    size = ctx.apply(Fn.SQRT, ctx.apply(Fn.MUL, inner, number(2.0)))
    return ctx.apply(Fn.MUL, ctx.apply(Fn.SIGN, centred), size)


TRANSFORMS: Mapping[str, Callable[[NodeContext, str], str]] = {
    "NONE": lambda ctx, scores: scores,
    "SOFTMAX": lambda ctx, scores: ctx.emit(Softmax((1,)), [scores]),
    "LOGISTIC": lambda ctx, scores: ctx.apply(Fn.SIGMOID, scores),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
"""Post transforms of scores ``[samples, classes]``, in the order of their numbers."""


def transformed(ctx: NodeContext, scores: str, kind: str) -> str:
    """*scores* ``[samples, classes]`` after the post transform *kind*."""
    if kind not in TRANSFORMS:
        raise Unsupported(f"post_transform={kind}", f"use one of {', '.join(TRANSFORMS)}")
    return TRANSFORMS[kind](ctx, scores)


def class_labels(ctx: NodeContext, name: str) -> np.ndarray:
    """The integer labels of the classes in the attribute *name*; any numbers if none are read."""
    texts = ctx.attr("classlabels_strings", ())
    labels = ctx.ints(name, () if ctx.is_output_used(0) else range(len(texts)))
    if not labels:
        advice = "texts are not supported; use integer labels, or remove the output of labels"
        raise Unsupported("classlabels_strings", advice)
    return np.asarray(labels, np.int64)


def labelled(ctx: NodeContext, scores: str, labels: np.ndarray) -> str:
    """The label of the class with the highest score of each sample."""
    best = ctx.emit(ArgReduce(ReduceKind.MAX, 1), [scores])
    flat = ctx.reshape(best, ctx.type_of(best).shape[:1])
    return ctx.emit(Gather(0), [ctx.literal(labels, DType.INT64), flat])
