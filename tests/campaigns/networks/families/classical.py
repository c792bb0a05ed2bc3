"""Operators of ai.onnx.ml on numbers: features, linear models, support vectors and trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import numpy_helper

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["CLASSICAL"]

_SINGLE = np.dtype(np.float32)


def _table(net: Growing, width: int = 0) -> Value:
    """Rows of features."""
    found = [v for v in net.values if v.dtype == _SINGLE and v.rank == 2]
    if found and net.chance() and not width:
        value: Value = net.one_of(found)
        return value
    return net.new_input([net.count(1, 7), width or net.count(1, 6)], _SINGLE)


def _some(net: Growing, many: int) -> list[float]:
    return [float(n) for n in net.normal(many)]


def features(net: Growing) -> None:
    """Columns picked, compared, scaled, normalised or put side by side."""
    x = _table(net)
    width = x.shape[1]
    name = net.one_of([
        "ai.onnx.ml.ArrayFeatureExtractor", "ai.onnx.ml.Binarizer", "ai.onnx.ml.FeatureVectorizer",
        "ai.onnx.ml.Normalizer", "ai.onnx.ml.Scaler",
    ])  # fmt: skip
    if name == "ai.onnx.ml.ArrayFeatureExtractor":
        net.add(name, x, net.constant(net.rng.integers(0, width, net.count(1, 5))))
    elif name == "ai.onnx.ml.Binarizer":
        net.add(name, x, threshold=float(net.normal()))
    elif name == "ai.onnx.ml.FeatureVectorizer":
        other = net.new_input([x.shape[0], net.count(1, 4)], _SINGLE)
        net.add(name, x, other, inputdimensions=[width, other.shape[1]])
    elif name == "ai.onnx.ml.Normalizer":
        net.add(name, x, norm=net.one_of(["MAX", "L1", "L2"]))
    else:
        many = net.one_of([1, width])
        net.add(name, x, offset=_some(net, many), scale=_some(net, many))


def missing(net: Growing) -> None:
    """Numbers in the place of those that are missing."""
    if net.chance():
        x = net.new_input([net.count(1, 5), net.count(1, 6)], np.int64)
        given: dict[str, Any] = {"imputed_value_int64s": [7], "replaced_value_int64": 2}
    else:
        width = net.count(1, 6)
        array = net.rng.integers(0, 3, (net.count(1, 5), width)).astype(_SINGLE)
        x = net.sure(array)
        fed = net.fed(array)
        x = fed if net.chance() else x
        given = {"imputed_value_floats": _some(net, width), "replaced_value_float": 0.0}
    net.add("ai.onnx.ml.Imputer", x, **given)


def labels(net: Growing) -> None:
    """Numbers for other numbers, and a flag for each category."""
    x = net.new_input(net.shape(1, 2), np.int64)
    if net.chance():
        net.add("ai.onnx.ml.OneHotEncoder", x, cats_int64s=[-2, 0, 1, 3], zeros=1,
                dtype=_SINGLE)  # fmt: skip
        return
    keys: list[int] = [-3, -1, 0, 2, 4]
    if net.chance():
        net.add("ai.onnx.ml.LabelEncoder", x, keys_int64s=keys, dtype=_SINGLE,
                values_floats=_some(net, 5), default_float=0.5)  # fmt: skip
    else:
        values = [int(n) for n in net.rng.integers(-9, 9, 5)]
        net.add("ai.onnx.ml.LabelEncoder", x, keys_int64s=keys, values_int64s=values,
                default_int64=-7)  # fmt: skip


def linear(net: Growing) -> None:
    """Scores of rows: sums of weighted features."""
    x = _table(net)
    width, classes = x.shape[1], net.count(2, 4)
    if net.chance():
        targets = net.count(1, 3)
        net.add(
            "ai.onnx.ml.LinearRegressor", x, coefficients=_some(net, targets * width),
            intercepts=_some(net, targets), targets=targets,
        )  # fmt: skip
        return
    net.several(
        "ai.onnx.ml.LinearClassifier", x, outputs=2, coefficients=_some(net, classes * width),
        intercepts=_some(net, classes), classlabels_ints=list(range(classes)), multi_class=1,
        post_transform=net.one_of(["NONE", "SOFTMAX", "LOGISTIC"]),
    )  # fmt: skip


def support_vectors(net: Growing) -> None:
    x = _table(net, net.count(1, 5))
    many = net.count(1, 5)
    kernel = net.one_of(["LINEAR", "RBF", "POLY", "SIGMOID"])
    net.add(
        "ai.onnx.ml.SVMRegressor", x, coefficients=_some(net, many), rho=[0.3],
        support_vectors=_some(net, many * x.shape[1]), n_supports=many, kernel_type=kernel,
        kernel_params=[0.4, 0.2, 2.0],
    )  # fmt: skip


def pairwise_support_vectors(net: Growing) -> None:
    """Votes of pairs of classes, perhaps with probabilities.

    onnxruntime passes over the softmax of a single score.
    """
    x = _table(net, net.count(1, 5))
    classes = net.count(2, 4)
    each = [net.count(1, 3) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    parameters: dict[str, Any] = {}
    if net.chance():
        parameters = {"prob_a": [-1.0 - abs(a) for a in _some(net, pairs)],
                      "prob_b": _some(net, pairs)}  # fmt: skip
    net.several(
        "ai.onnx.ml.SVMClassifier", x, outputs=2, classlabels_ints=list(range(classes)),
        vectors_per_class=each, coefficients=_some(net, (classes - 1) * sum(each)),
        support_vectors=_some(net, sum(each) * x.shape[1]), rho=_some(net, pairs),
        kernel_type=net.one_of(["LINEAR", "RBF", "POLY", "SIGMOID"]),
        kernel_params=[0.4, 0.2, 2.0], post_transform=net.one_of(["NONE", "LOGISTIC"]),
        **parameters,
    )  # fmt: skip


def _forest(net: Growing, width: int, modes: list[str]) -> dict[str, list[Any]]:
    """Nodes of some trees, in which each inner node has two, by attribute; leaves are LEAF."""
    found: dict[str, list[Any]] = {
        k: [] for k in ("tree", "id", "feature", "value", "mode", "true", "false")
    }  # fmt: skip

    def grow(tree: int, depth: int) -> int:
        place = found["tree"].count(tree)
        at = len(found["tree"])
        is_leaf = depth == 0 or (depth < 3 and net.chance(0.3))
        row = (tree, place, 0 if is_leaf else net.count(0, width - 1),
               0.0 if is_leaf else float(np.float32(net.normal())),
               "LEAF" if is_leaf else net.one_of(modes), 0, 0)  # fmt: skip
        for column, number in zip(found.values(), row, strict=True):
            column.append(number)
        if not is_leaf:
            found["true"][at] = grow(tree, depth - 1)
            found["false"][at] = grow(tree, depth - 1)
        return place

    for tree in range(net.count(1, 4)):
        grow(tree, 3)
    return found


def _nodes(forest: dict[str, list[Any]]) -> dict[str, Any]:
    names = {"tree": "treeids", "id": "nodeids", "feature": "featureids", "value": "values",
             "mode": "modes", "true": "truenodeids", "false": "falsenodeids"}  # fmt: skip
    return {f"nodes_{names[key]}": column for key, column in forest.items()}


def trees(net: Growing) -> None:
    """Forests that give sums for targets, or scores for classes.

    onnxruntime passes over classes that no leaf names, and gives numbers that are no labels of two.
    """
    if net.opset >= 22:  # networks of which have the form below
        return
    x = _table(net)
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"]
    mode = net.one_of(modes)
    forest = _forest(net, x.shape[1], [mode])
    leaves = [n for n, kind in enumerate(forest["mode"]) if kind == "LEAF"]
    what = "target" if net.chance() else "class"
    many = net.count(1, 3) if what == "target" else net.count(3, 4)
    which = [net.count(0, many - 1) for _ in leaves]
    weights = _some(net, len(leaves))
    if what == "class":
        weights = [abs(weight) for weight in weights]
    ends: dict[str, Any] = {
        f"{what}_treeids": [forest["tree"][n] for n in leaves],
        f"{what}_nodeids": [forest["id"][n] for n in leaves],
        f"{what}_ids": which, f"{what}_weights": weights,
    }  # fmt: skip
    if what == "target":
        net.add("ai.onnx.ml.TreeEnsembleRegressor", x, n_targets=many,
                aggregate_function=net.one_of(["SUM", "AVERAGE", "MIN", "MAX"]),
                **_nodes(forest), **ends)  # fmt: skip
    else:
        net.several("ai.onnx.ml.TreeEnsembleClassifier", x, outputs=2,
                    classlabels_int64s=list(range(many)), **_nodes(forest), **ends)  # fmt: skip


def joined_trees(net: Growing) -> None:
    """The form of forests since version 5, in which leaves are apart."""
    if net.opset < 22:
        return
    x = _table(net)
    forest = _forest(net, x.shape[1], ["SUM"])
    inner = [n for n, kind in enumerate(forest["mode"]) if kind != "LEAF"]
    leaves = [n for n, kind in enumerate(forest["mode"]) if kind == "LEAF"]
    where = {(forest["tree"][n], forest["id"][n]): n for n in range(len(forest["tree"]))}

    def ends(side: str) -> tuple[list[int], list[int]]:
        places = [where[forest["tree"][n], forest[side][n]] for n in inner]
        flags = [int(place in leaves) for place in places]
        return [leaves.index(p) if p in leaves else inner.index(p) for p in places], flags

    (true, true_leaf), (false, false_leaf) = ends("true"), ends("false")
    roots = [inner.index(where[tree, 0]) for tree in sorted(set(forest["tree"]))]
    targets = net.count(1, 3)
    net.add(
        "ai.onnx.ml.TreeEnsemble", x, n_targets=targets, aggregate_function=net.count(0, 3),
        nodes_featureids=[forest["feature"][n] for n in inner],
        nodes_splits=_held([forest["value"][n] for n in inner]),
        nodes_modes=numpy_helper.from_array(np.full(len(inner), net.count(0, 3), np.uint8)),
        nodes_truenodeids=true, nodes_trueleafs=true_leaf, nodes_falsenodeids=false,
        nodes_falseleafs=false_leaf, tree_roots=roots,
        leaf_targetids=[net.count(0, targets - 1) for _ in leaves],
        leaf_weights=_held(_some(net, len(leaves))),
    )  # fmt: skip


def _held(numbers: list[float]) -> Any:
    return numpy_helper.from_array(np.array(numbers, _SINGLE))


CLASSICAL: dict[Callable[[Growing], None], float] = {
    features: 0.5, missing: 0.3, labels: 0.4, linear: 0.4, support_vectors: 0.3,
    pairwise_support_vectors: 0.3, trees: 0.4, joined_trees: 0.3,
}  # fmt: skip
