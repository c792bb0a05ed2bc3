"""Linear models and support vector machines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.ml.shared import (
    DOMAIN,
    class_labels,
    columns_of,
    labelled,
    transformed,
)
from ansorpy.graph.ops import Fn, MatMul, Reduce, ReduceOp
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def linear_regressor(ctx: NodeContext) -> str:
    """A weighted sum of features for each target."""
    scores = _weighted(ctx, ctx.attr("targets", 1))
    return transformed(ctx, scores, ctx.attr("post_transform", "NONE"))


def linear_classifier(ctx: NodeContext) -> tuple[str, ...]:
    """A weighted sum of features for each class, and the label of the highest one."""
    labels = class_labels(ctx, "classlabels_ints")
    scores = _weighted(ctx, len(labels))
    after = ctx.attr("post_transform", "NONE")
    return labelled(ctx, scores, labels), transformed(ctx, scores, after)


def _weighted(ctx: NodeContext, rows: int) -> str:
    x = ctx.cast(columns_of(ctx), DType.FLOAT32)
    features = ctx.number(ctx.builder.types[x].shape[1], "a linear model")
    weights = np.asarray(ctx.attr("coefficients", ()), np.float32)
    if len(weights) != rows * features:
        raise Unsupported(
            f"{len(weights)} coefficients", f"give {features} for each of {rows} results"
        )
    matrix = ctx.literal(weights.reshape(rows, features).T, DType.FLOAT32)
    scores = ctx.emit(MatMul(), [x, matrix])
    added = np.asarray(ctx.attr("intercepts", ()), np.float32)
    return (
        ctx.apply(Fn.ADD, scores, ctx.literal(added[None, :], DType.FLOAT32))
        if len(added)
        else scores
    )


def svm_regressor(ctx: NodeContext) -> str:
    """A weighted sum of kernels of each sample with all support vectors, or of its features."""
    x = ctx.cast(columns_of(ctx), DType.FLOAT32)
    vectors, count = _vectors(ctx, ctx.attr("n_supports", 0))
    kernel = _kernel(ctx, x, vectors) if count else x
    weights = np.asarray(ctx.attr("coefficients", ()), np.float32)
    scores = ctx.emit(MatMul(), [kernel, ctx.literal(weights[:, None], DType.FLOAT32)])
    rho = np.asarray(ctx.attr("rho", (0.0,)), np.float32)
    scores = ctx.apply(Fn.ADD, scores, ctx.literal(rho[None, :1], DType.FLOAT32))
    if not ctx.attr("one_class", 0):
        return transformed(ctx, scores, ctx.attr("post_transform", "NONE"))
    one = ctx.literal(1.0, DType.FLOAT32)
    inside = ctx.apply(Fn.LESS, ctx.literal(0.0, DType.FLOAT32), scores)
    return ctx.apply(Fn.WHERE, inside, one, ctx.literal(-1.0, DType.FLOAT32))


def _vectors(ctx: NodeContext, count: int) -> tuple[np.ndarray, int]:
    given = np.asarray(ctx.attr("support_vectors", ()), np.float32)
    return given.reshape(count, -1) if count else given, count


def _kernel(ctx: NodeContext, x: str, vectors: np.ndarray) -> str:
    """``[samples, vectors]``: the kernel of each sample with each support vector."""
    kind = ctx.attr("kernel_type", "LINEAR")
    gamma, shift, degree = (*ctx.attr("kernel_params", ()), 0.0, 0.0, 0.0)[:3]
    if kind not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        raise Unsupported(f"kernel_type={kind}", "use LINEAR, POLY, RBF or SIGMOID")
    float32 = DType.FLOAT32
    products = ctx.emit(MatMul(), [x, ctx.literal(vectors.T, float32)])
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        # The squared distance: |x|^2 - 2 x v + |v|^2.
        own = ctx.emit(Reduce(ReduceOp.SUM, (1,), True), [ctx.apply(Fn.MUL, x, x)])
        theirs = ctx.literal(
            (vectors.astype(np.float64) ** 2).sum(1)[None, :].astype(np.float32), float32
        )
        twice = ctx.apply(Fn.MUL, products, ctx.literal(2.0, float32))
        distance = ctx.apply(Fn.ADD, ctx.apply(Fn.SUB, own, twice), theirs)
        return ctx.apply(Fn.EXP, ctx.apply(Fn.MUL, distance, ctx.literal(-gamma, float32)))
    scaled = ctx.apply(Fn.MUL, products, ctx.literal(gamma, float32))
    scaled = ctx.apply(Fn.ADD, scaled, ctx.literal(shift, float32))
    if kind == "SIGMOID":
        return ctx.apply(Fn.TANH, scaled)
    return ctx.apply(Fn.POW, scaled, ctx.literal(degree, float32))


OPERATORS: dict[str, Callable[[NodeContext], str | tuple[str, ...]]] = {
    f"{DOMAIN}.LinearClassifier": linear_classifier,
    f"{DOMAIN}.LinearRegressor": linear_regressor,
    f"{DOMAIN}.SVMRegressor": svm_regressor,
}
