"""Support vector machines: kernels, votes of pairs of classes, and probabilities."""

from __future__ import annotations

from itertools import accumulate, combinations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.ml.shared import (
    class_labels,
    columns_of,
    labelled,
    transformed,
)
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.emits import EmitsBeside
from ansorpy.graph.ir import Array, Graph, GraphBuilder, Output
from ansorpy.graph.ops import Expand, Fn, Iota, MatMul, Reduce, ReduceKind, TensorType, Transpose
from ansorpy.graph.regions import LoopRegion, Result
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]

FLOAT32 = DType.FLOAT32
_LEAST = 1e-7
"""Of a probability, and of what remains to 1: as in libsvm."""
_SWEEPS = 100
"""Over all classes, at most, until their probabilities agree with those of pairs: as in libsvm."""
_AGREES = 0.005
"""Times one over the number of classes: the error that ends this, as in libsvm."""


def svm_classifier(ctx: NodeContext) -> tuple[str, ...]:
    """The label of the class that wins most pairs, and scores of pairs or classes.

    The score of a single pair, and its opposite, are transformed as two scores are: so does onnx's
    reference; onnxruntime takes no softmax of them.
    """
    labels = class_labels(ctx, "classlabels_ints")
    if len(labels) < 2:
        raise Unsupported("classlabels_ints", "give at least two classes")
    x = ctx.cast(columns_of(ctx), FLOAT32)
    after = ctx.attr("post_transform", "NONE")
    each = ctx.ints("vectors_per_class", ())
    if not sum(each):
        scores = _linear(ctx, x, len(labels))
        return labelled(ctx, scores, labels), transformed(ctx, scores, after)
    if len(each) != len(labels):
        raise Unsupported("vectors_per_class", f"give one number for each of {len(labels)} classes")
    scores = _duels(ctx, x, each)
    label = labelled(ctx, _votes(ctx, scores, len(labels)), labels)
    if ctx.attr("prob_a", ()):
        scores = _probabilities(ctx, scores, len(labels))
    elif len(labels) == 2:
        scores = ctx.concat([ctx.apply(Fn.NEG, scores), scores], 1)
    return label, transformed(ctx, scores, after)


def _linear(ctx: NodeContext, x: str, classes: int) -> str:
    """A weighted sum of features for each class."""
    weights = _floats(ctx, "coefficients").reshape(classes, -1)
    scores = ctx.emit(MatMul(), [x, ctx.literal(weights.T, FLOAT32)])
    return ctx.apply(Fn.ADD, scores, ctx.literal(_floats(ctx, "rho")[None, :1], FLOAT32))


def _pairs(classes: int) -> list[tuple[int, int]]:
    """Two classes each, in the order of scores, ``rho`` and parameters of probabilities."""
    return list(combinations(range(classes), 2))


def _duels(ctx: NodeContext, x: str, each: tuple[int, ...]) -> str:
    """``[samples, pairs]``: for each pair of classes a score, positive if the first one wins.

    It is a weighted sum of kernels with the support vectors of both.
    """
    count, pairs = sum(each), _pairs(len(each))
    vectors = _vectors(ctx, count)
    weights = _floats(ctx, "coefficients").reshape(len(each) - 1, count)
    starts = [0, *accumulate(each)]
    matrix = np.zeros((count, len(pairs)), np.float32)
    for n, (i, j) in enumerate(pairs):
        for own, other in ((i, j - 1), (j, i)):
            rows = slice(starts[own], starts[own + 1])
            matrix[rows, n] = weights[other, rows]
    scores = ctx.emit(MatMul(), [_kernel(ctx, x, vectors), ctx.literal(matrix, FLOAT32)])
    rho = _floats(ctx, "rho")
    if len(rho) != len(pairs):
        raise Unsupported("rho", f"give one for each of {len(pairs)} pairs of classes")
    return ctx.apply(Fn.ADD, scores, ctx.literal(rho[None], FLOAT32))


def _votes(ctx: NodeContext, scores: str, classes: int) -> str:
    """``[samples, classes]``: how many pairs each class wins."""
    first, second = (np.eye(classes)[list(side)] for side in zip(*_pairs(classes), strict=True))
    wins = ctx.cast(ctx.apply(Fn.LESS, ctx.literal(0.0, FLOAT32), scores), FLOAT32)
    more = ctx.emit(MatMul(), [wins, ctx.literal(first - second, FLOAT32)])
    return ctx.apply(Fn.ADD, more, ctx.literal(second.sum(0)[None], FLOAT32))


def _probabilities(ctx: NodeContext, scores: str, classes: int) -> str:
    """``[samples, classes]``: probabilities of classes that agree best with those of all pairs.

    Newton steps, one class after another, until all errors are small.

    Paper: Wu, Lin, Weng: Probability Estimates for Multi-class Classification by Pairwise Coupling
    (JMLR 2004), algorithm 2.  It ends where libsvm ends it, since the result depends on that.
    """
    squares = _squares(ctx, _pairwise(ctx, scores), classes)
    samples = ctx.type_of(scores).shape[0]
    even = ctx.literal(np.full((1, classes), 1 / classes), FLOAT32)
    start = ctx.emit(Expand((samples, classes)), [even])
    moves = ctx.emit(Expand((samples, 1)), [ctx.literal(np.ones((1, 1)), DType.BOOL)])
    kinds = [ctx.type_of(value) for value in (start, moves, squares)]
    body = _newton_step(*kinds)
    loop = LoopRegion(body, max(_SWEEPS, classes) * classes, carried=2, has_condition=True)
    return ctx.emit(Result(loop, 0), [start, moves, squares])


def _pairwise(ctx: NodeContext, scores: str) -> str:
    """``[samples, pairs]``: the probability that the first class of a pair is right."""
    factor, shift = (_floats(ctx, name)[None] for name in ("prob_a", "prob_b"))
    pairs = ctx.type_of(scores).shape[1:]
    if factor.shape[1:] != pairs or shift.shape[1:] != pairs:
        raise Unsupported("prob_a and prob_b", f"give one for each of {pairs[0]} pairs of classes")
    scaled = ctx.apply(Fn.MUL, scores, ctx.literal(factor, FLOAT32))
    moved = ctx.apply(Fn.ADD, scaled, ctx.literal(shift, FLOAT32))
    found = ctx.apply(Fn.SIGMOID, ctx.apply(Fn.NEG, moved))
    for fn, end in ((Fn.MAX, _LEAST), (Fn.MIN, 1 - _LEAST)):
        found = ctx.apply(fn, found, ctx.literal(end, FLOAT32))
    return found


def _squares(ctx: NodeContext, pairwise: str, classes: int) -> str:
    """``[samples, classes, classes]``: the matrix whose product with probabilities is alike for
    all classes, where these agree best with the *pairwise* ones."""
    pairs, size = _pairs(classes), classes * classes
    places, rest = np.zeros((len(pairs), size)), np.zeros((1, size))
    for n, (i, j) in enumerate(pairs):
        places[n, i * classes + j], places[n, j * classes + i] = 1, -1
        rest[0, j * classes + i] = 1
    spread = ctx.emit(MatMul(), [pairwise, ctx.literal(places, FLOAT32)])
    flat = ctx.apply(Fn.ADD, spread, ctx.literal(rest, FLOAT32))
    samples = ctx.type_of(pairwise).shape[0]
    wins = ctx.reshape(flat, (samples, classes, classes))
    losses = ctx.emit(Transpose((0, 2, 1)), [wins])
    total = ctx.emit(Reduce(ReduceKind.SUM, (1,), True), [ctx.apply(Fn.MUL, wins, wins)])
    diagonal = ctx.apply(Fn.MUL, total, ctx.literal(np.eye(classes)[None], FLOAT32))
    return ctx.apply(Fn.SUB, diagonal, ctx.apply(Fn.MUL, wins, losses))


def _newton_step(start: TensorType, moves: TensorType, squares: TensorType) -> Graph:
    """A step along one class of all samples that still move; the first one begins a sweep."""
    builder, classes = GraphBuilder(), start.shape[1]
    number = builder.add_input("iteration", TensorType((), DType.INT64))
    old = builder.add_input("probabilities", start)
    moving = builder.add_input("moving", moves)
    matrix = builder.add_input("squares", squares)
    to = EmitsBeside(builder, "step")

    def reduced(value: str, axes: tuple[int, ...], kind: ReduceKind = ReduceKind.SUM) -> str:
        return to.emit(Reduce(kind, axes, keepdims=axes == (1,)), [value])

    which = to.apply(Fn.REMAINDER, number, to.literal(np.asarray(classes), DType.INT64))
    own = to.cast(to.apply(Fn.EQUAL, to.emit(Iota((1, classes)), []), which), FLOAT32)
    across = to.reshape(old, (start.shape[0], 1, classes))
    slope = reduced(to.apply(Fn.MUL, matrix, across), (2,))
    mean = reduced(to.apply(Fn.MUL, old, slope), (1,))
    errors = to.apply(Fn.ABS, to.apply(Fn.SUB, slope, mean))
    allowed = to.literal(np.asarray(_AGREES / classes), FLOAT32)
    disagrees = to.apply(Fn.LESS_EQUAL, allowed, reduced(errors, (1,), ReduceKind.MAX))
    is_later = to.apply(Fn.LESS, to.literal(np.asarray(0), DType.INT64), which)
    goes_on = to.apply(Fn.AND, moving, to.apply(Fn.OR, disagrees, is_later))
    missing = to.apply(Fn.SUB, mean, reduced(to.apply(Fn.MUL, slope, own), (1,)))
    on_diagonal = to.apply(Fn.MUL, own, to.reshape(own, (1, classes, 1)))
    curvature = reduced(reduced(to.apply(Fn.MUL, matrix, on_diagonal), (2,)), (1,))
    way = to.apply(Fn.DIV, missing, curvature)
    stepped = to.apply(Fn.ADD, old, to.apply(Fn.MUL, own, way))
    whole = to.apply(Fn.ADD, way, to.literal(np.asarray(1.0), FLOAT32))
    new = to.apply(Fn.WHERE, goes_on, to.apply(Fn.DIV, stepped, whole), old)
    any_left = reduced(to.cast(goes_on, FLOAT32), (0, 1), ReduceKind.MAX)
    again = to.apply(Fn.LESS, to.literal(np.asarray(0.0), FLOAT32), any_left)
    made = (again, new, goes_on)
    return builder.finish([Output(f"made.{n}", value) for n, value in enumerate(made)])


def _floats(ctx: NodeContext, name: str) -> Array:
    return np.asarray(ctx.attr(name, ()), np.float32)


def svm_regressor(ctx: NodeContext) -> str:
    """A weighted sum of kernels of each sample with all support vectors, or of its features."""
    x = ctx.cast(columns_of(ctx), FLOAT32)
    count = ctx.attr("n_supports", 0)
    kernel = _kernel(ctx, x, _vectors(ctx, count)) if count else x
    weights = _floats(ctx, "coefficients")
    scores = ctx.emit(MatMul(), [kernel, ctx.literal(weights[:, None], FLOAT32)])
    rho = np.asarray(ctx.attr("rho", (0.0,)), np.float32)
    scores = ctx.apply(Fn.ADD, scores, ctx.literal(rho[None, :1], FLOAT32))
    if not ctx.attr("one_class", 0):
        return transformed(ctx, scores, ctx.attr("post_transform", "NONE"))
    one = ctx.literal(1.0, FLOAT32)
    inside = ctx.apply(Fn.LESS, ctx.literal(0.0, FLOAT32), scores)
    return ctx.apply(Fn.WHERE, inside, one, ctx.literal(-1.0, FLOAT32))


def _vectors(ctx: NodeContext, count: int) -> np.ndarray:
    """The support vectors, ``[count, features]``."""
    return _floats(ctx, "support_vectors").reshape(count, -1)


def _kernel(ctx: NodeContext, x: str, vectors: np.ndarray) -> str:
    """``[samples, vectors]``: the kernel of each sample with each support vector."""
    kind = ctx.attr("kernel_type", "LINEAR")
    gamma, shift, degree = (*ctx.attr("kernel_params", ()), 0.0, 0.0, 0.0)[:3]
    if kind not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        raise Unsupported(f"kernel_type={kind}", "use LINEAR, POLY, RBF or SIGMOID")
    products = ctx.emit(MatMul(), [x, ctx.literal(vectors.T, FLOAT32)])
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        # The squared distance: |x|^2 - 2 x v + |v|^2.
        own = ctx.emit(Reduce(ReduceKind.SUM, (1,), True), [ctx.apply(Fn.MUL, x, x)])
        theirs = ctx.literal(
            (vectors.astype(np.float64) ** 2).sum(1)[None, :].astype(np.float32), FLOAT32
        )
        twice = ctx.apply(Fn.MUL, products, ctx.literal(2.0, FLOAT32))
        distance = ctx.apply(Fn.ADD, ctx.apply(Fn.SUB, own, twice), theirs)
        return ctx.apply(Fn.EXP, ctx.apply(Fn.MUL, distance, ctx.literal(-gamma, FLOAT32)))
    scaled = ctx.apply(Fn.MUL, products, ctx.literal(gamma, FLOAT32))
    scaled = ctx.apply(Fn.ADD, scaled, ctx.literal(shift, FLOAT32))
    if kind == "SIGMOID":
        return ctx.apply(Fn.TANH, scaled)
    return ctx.apply(Fn.POW, scaled, ctx.literal(degree, FLOAT32))


OPERATORS: dict[str, Translate] = {
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
}
