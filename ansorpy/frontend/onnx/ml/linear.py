"""Linear models."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.ml.shared import (
    class_labels,
    columns_of,
    labelled,
    transformed,
)
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, MatMul
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
    features = ctx.number(ctx.type_of(x).shape[1], "a linear model")
    weights = np.asarray(ctx.attr("coefficients", ()), np.float32)
    if len(weights) != rows * features:
        raise Unsupported(
            f"{len(weights)} coefficients", f"give {features} for each of {rows} results"
        )
    matrix = ctx.literal(weights.reshape(rows, features).T, DType.FLOAT32)
    scores = ctx.emit(MatMul(), [x, matrix])
    added = np.asarray(ctx.attr("intercepts", ()), np.float32)
    if not len(added):
        return scores
    return ctx.apply(Fn.ADD, scores, ctx.literal(added[None, :], DType.FLOAT32))


OPERATORS: dict[str, Translate] = {
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
}
