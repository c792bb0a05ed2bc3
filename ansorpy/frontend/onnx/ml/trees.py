"""Ensembles of decision trees: regressors, classifiers, and their newer common form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.ml.forest import AGGREGATES, MODES, NEUTRAL, Forest, aggregated
from ansorpy.frontend.onnx.ml.shared import (
    TRANSFORMS,
    class_labels,
    columns_of,
    labelled,
    transformed,
)
from ansorpy.frontend.onnx.reader import array_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Gather
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def tree_ensemble(ctx: NodeContext) -> str:
    """The weights of the leaves that each sample reaches, for each target, aggregated."""
    x = columns_of(ctx)
    how = _named(ctx, "aggregate_function", 1, AGGREGATES)
    after = _named(ctx, "post_transform", 0, TRANSFORMS)
    forest = _forest(ctx, ctx.attr("n_targets", 1), NEUTRAL.get(how, 0.0))
    return transformed(ctx, aggregated(ctx, x, forest, how, ctx.type_of(x).dtype), after)


def _named(ctx: NodeContext, name: str, default: int, names: Iterable[str]) -> str:
    """The one of *names* whose number is the attribute *name*."""
    known, number = [*names], ctx.attr(name, default)
    if not 0 <= number < len(known):
        raise Unsupported(f"{name}={number}", f"use a number below {len(known)}")
    return known[number]


def _tensor(ctx: NodeContext, name: str) -> np.ndarray:
    """A tensor attribute, flat; empty if it is missing."""
    held = ctx.attr(name, None)
    return np.zeros(0) if held is None else array_of(held).reshape(-1)


def _forest(ctx: NodeContext, targets: int, neutral: float) -> Forest:
    """The trees of the newer form, whose leaves are numbered apart: they follow the inner nodes.

    The weights of a leaf for other targets than its own are *neutral*.
    """
    modes = _tensor(ctx, "nodes_modes").astype(np.int64)
    inner = len(modes)
    leaf_targets = np.asarray(ctx.ints("leaf_targetids", ()), np.int64)
    count = inner + len(leaf_targets)
    own = np.arange(count)

    def successors(ids: str, leaves: str) -> np.ndarray:
        given, is_leaf = (np.asarray(ctx.ints(name, ()), np.int64) for name in (ids, leaves))
        return np.concatenate([given + inner * (is_leaf != 0), own[inner:]])

    yes = successors("nodes_truenodeids", "nodes_trueleafs")
    no = successors("nodes_falsenodeids", "nodes_falseleafs")
    # A tree that is a leaf is written as a node whose successors are the same leaf.
    weights = np.full((count, targets), neutral)
    weights[own[inner:], leaf_targets] = _tensor(ctx, "leaf_weights")
    missing = ctx.ints("nodes_missing_value_tracks_true", ()) or (0,) * inner
    padded = np.zeros(count - inner)
    return Forest(
        features=np.concatenate([ctx.ints("nodes_featureids", ()), padded]).astype(np.int64),
        values=np.concatenate([_tensor(ctx, "nodes_splits"), padded]),
        modes=np.concatenate([modes, padded]).astype(np.int64),
        yes=yes,
        no=no,
        missing=np.concatenate([missing, padded]).astype(bool),
        members=_members(ctx, modes, count),
        roots=np.asarray(ctx.ints("tree_roots", ()), np.int64),
        weights=weights,
    )


def _members(ctx: NodeContext, modes: np.ndarray, count: int) -> np.ndarray:
    """The values of each membership node, whose lists end with NaN, filled up with NaN."""
    lists: list[list[float]] = [[]]
    for value in _tensor(ctx, "membership_values"):
        if np.isnan(value):
            lists.append([])
        else:
            lists[-1].append(float(value))
    nodes = np.flatnonzero(modes == MODES.index("MEMBER"))
    if len(nodes) != len(lists) - 1:
        raise Unsupported("membership_values", f"give {len(nodes)} lists, each followed by NaN")
    found = np.full((count, max(map(len, lists), default=0) or 1), np.nan)
    for node, values in zip(nodes, lists, strict=False):
        found[node, : len(values)] = values
    return found


def tree_ensemble_regressor(ctx: NodeContext) -> str:
    """The weights of the leaves that each sample reaches, for each target, aggregated."""
    x = columns_of(ctx)
    targets, how = ctx.attr("n_targets", 1), ctx.attr("aggregate_function", "SUM")
    forest = _old_forest(ctx, "target", targets, how)
    scores = aggregated(ctx, x, forest, how, DType.FLOAT32)
    return transformed(ctx, _based(ctx, scores, targets), ctx.attr("post_transform", "NONE"))


def tree_ensemble_classifier(ctx: NodeContext) -> tuple[str, ...]:
    """The label of each sample, and the scores of all classes.

    Trees of two classes may have weights of only one.
    """
    x = columns_of(ctx)
    labels = class_labels(ctx, "classlabels_int64s")
    after = ctx.attr("post_transform", "NONE")
    used = set(ctx.ints("class_ids", ()))
    if len(labels) == 2 and len(used) == 1:
        forest = _old_forest(ctx, "class", 1, "SUM", only=True)
        score = _based(ctx, aggregated(ctx, x, forest, "SUM", DType.FLOAT32), 1)
        positive = bool((forest.weights >= 0).all())
        scores = _of_two(ctx, score, after, positive=positive, is_second=used == {1})
        return _label_of_two(ctx, score, labels, positive=positive), scores
    forest = _old_forest(ctx, "class", len(labels), "SUM")
    scores = aggregated(ctx, x, forest, "SUM", DType.FLOAT32)
    scores = _based(ctx, scores, len(labels))
    return labelled(ctx, scores, labels), transformed(ctx, scores, after)


def _of_two(ctx: NodeContext, score: str, after: str, *, positive: bool, is_second: bool) -> str:
    """The scores of two classes, of which only one has weights, as onnxruntime computes them.

    Weights that are said to be of the second class are its alone: the first one has 0.  Those of
    the first class decide for the second one, too: if all are positive, *score* is the probability
    of the second class, else the first one has its negative; no softmax is taken.
    """
    if is_second:
        none = ctx.apply(Fn.MUL, score, ctx.literal(0.0, DType.FLOAT32))
        return transformed(ctx, ctx.concat([none, score], 1), after)
    if after == "LOGISTIC" or not positive:
        other = ctx.apply(Fn.NEG, score)
    else:
        other = ctx.apply(Fn.SUB, ctx.literal(1.0, DType.FLOAT32), score)
    both = ctx.concat([other, score], 1)
    return both if after in ("SOFTMAX", "SOFTMAX_ZERO") else transformed(ctx, both, after)


def _label_of_two(ctx: NodeContext, score: str, labels: np.ndarray, *, positive: bool) -> str:
    """The label of the second class where *score* is high enough, else that of the first one."""
    limit = ctx.literal(0.5 if positive else 0.0, DType.FLOAT32)
    chosen = ctx.cast(ctx.apply(Fn.LESS, limit, score), DType.INT64)
    flat = ctx.reshape(chosen, ctx.type_of(chosen).shape[:1])
    return ctx.emit(Gather(0), [ctx.literal(labels, DType.INT64), flat])


def _based(ctx: NodeContext, scores: str, targets: int) -> str:
    """*scores* plus the base value of each target, if there are any."""
    base = ctx.attr("base_values", ()) or tuple(_tensor(ctx, "base_values_as_tensor"))
    if not len(base):
        return scores
    if len(base) not in (1, targets):
        raise Unsupported(f"{len(base)} base_values", f"give one for each of {targets} targets")
    return ctx.apply(Fn.ADD, scores, ctx.literal(np.asarray(base)[None, :], DType.FLOAT32))


def _old_forest(
    ctx: NodeContext, kind: str, targets: int, how: str, *, only: bool = False
) -> Forest:
    """The trees of the older form, whose nodes have a tree and a number in it.

    With *only*, all weights are those of the only target.
    """
    trees, ids = ctx.ints("nodes_treeids", ()), ctx.ints("nodes_nodeids", ())
    number = {place: n for n, place in enumerate(zip(trees, ids, strict=True))}
    modes: Sequence[bytes | str] = ctx.attr("nodes_modes", ())
    said = [m.decode() if isinstance(m, bytes) else m for m in modes]
    unknown = sorted({*said} - {*MODES[:-1], "LEAF"})
    if unknown:
        raise Unsupported(
            f"nodes_modes={unknown[0]}", f"use LEAF or one of {', '.join(MODES[:-1])}"
        )
    own = np.arange(len(ids))

    def successors(name: str) -> np.ndarray:
        given = ctx.ints(name, ())
        return np.asarray([
            n if mode == "LEAF" else number[tree, to]
            for n, (mode, tree, to) in enumerate(zip(said, trees, given, strict=True))
        ], np.int64)  # fmt: skip

    is_leaf = np.asarray([mode == "LEAF" for mode in said], bool)
    weights = np.zeros((len(ids), targets))
    weights[is_leaf] = NEUTRAL.get(how, 0.0)
    leaves = zip(ctx.ints(f"{kind}_treeids", ()), ctx.ints(f"{kind}_nodeids", ()), strict=True)
    places = [*zip(leaves, ctx.ints(f"{kind}_ids", ()), strict=True)]
    if len({*places}) < len(places):
        raise Unsupported(f"{kind}_ids", "give a leaf one weight of each result")
    given = ctx.attr(f"{kind}_weights", ()) or tuple(_tensor(ctx, f"{kind}_weights_as_tensor"))
    for (leaf, target), weight in zip(places, given, strict=True):
        weights[number[leaf], 0 if only else target] = weight
    missing = ctx.ints("nodes_missing_value_tracks_true", ()) or (0,) * len(ids)
    values = ctx.attr("nodes_values", ()) or tuple(_tensor(ctx, "nodes_values_as_tensor"))
    yes, no = successors("nodes_truenodeids"), successors("nodes_falsenodeids")
    below = {int(n) for way in (yes, no) for n in way[way != own]}
    return Forest(
        features=np.where(is_leaf, 0, np.asarray(ctx.ints("nodes_featureids", ()), np.int64)),
        values=np.asarray(values, np.float64),
        modes=np.asarray([MODES.index(m) if m in MODES else 0 for m in said], np.int64),
        yes=yes,
        no=no,
        missing=np.asarray(missing).astype(bool),
        members=np.full((len(own), 1), np.nan),
        roots=np.asarray([n for n in own if n not in below], np.int64),
        weights=weights,
    )


OPERATORS: dict[str, Translate] = {
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": tree_ensemble_classifier,
    "TreeEnsembleRegressor": tree_ensemble_regressor,
}
