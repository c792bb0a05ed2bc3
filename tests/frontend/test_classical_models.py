"""Classical models of ``ai.onnx.ml``, beside onnxruntime, with random parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ansorpy.errors import ForeignFile, UnsupportedModel
from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from tests.frontend.sized import assert_same_at, import_sized
from tests.graph.executor import Array, run_network
from tests.peer import peer

FEATURES = 5
LABELLED = {"label": TensorProto.INT64, "scores": TensorProto.FLOAT}


def model(
    operator: str, outputs: Mapping[str, int], x: Array | None = None, **attributes: Any
) -> ModelProto:
    """One node on data such as *x*; the default is floats."""
    kind = TensorProto.FLOAT if x is None else helper.np_dtype_to_tensor_dtype(x.dtype)
    info = helper.make_tensor_value_info("x", kind, (7, FEATURES) if x is None else x.shape)
    node = helper.make_node(operator, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    graph = helper.make_graph([node], "g", [info], results)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def assert_as_onnxruntime(
    model: ModelProto, seed: int = 0, x: Array | None = None, *, missing: bool = False
) -> None:
    if x is None:
        x = np.random.default_rng(seed).standard_normal((7, FEATURES), np.float32)
    if missing:
        x[::2, 1] = np.nan
    session = peer(model)
    network = partition(optimize(load(model)))
    found = run_network(network, {"x": x})
    for got, want in zip(found, session.run(None, {"x": x}), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def tree(rng: np.random.Generator, number: int, depth: int) -> dict[str, list[Any]]:
    """A random tree in which some branches end early."""
    found: dict[str, list[Any]] = {
        name: [] for name in ("ids", "features", "values", "modes", "yes", "no", "missing")
    }

    def grow(left: int) -> int:
        own = len(found["ids"])
        is_leaf = left == 0 or (left < depth and rng.random() < 0.3)
        mode = rng.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
        for name, value in (
            ("ids", own), ("features", int(rng.integers(FEATURES))),
            ("values", float(rng.standard_normal())), ("modes", "LEAF" if is_leaf else str(mode)),
            ("yes", 0), ("no", 0), ("missing", int(rng.integers(2))),
        ):  # fmt: skip
            found[name].append(value)
        if not is_leaf:
            found["yes"][own], found["no"][own] = grow(left - 1), grow(left - 1)
        return own

    grow(depth)
    found["trees"] = [number] * len(found["ids"])
    return found


def forest(kind: str, rng: np.random.Generator, targets: list[int], depth: int) -> dict[str, Any]:
    """Attributes of a random forest whose leaves have weights of *targets*."""
    trees = [tree(rng, number, depth) for number in range(3)]

    def every(name: str) -> list[Any]:
        return [value for one in trees for value in one[name]]

    leaves = [
        (one["trees"][0], n, target)
        for one in trees for n, mode in enumerate(one["modes"]) if mode == "LEAF"
        for target in targets
    ]  # fmt: skip
    return {
        "nodes_treeids": every("trees"), "nodes_nodeids": every("ids"),
        "nodes_featureids": every("features"), "nodes_values": every("values"),
        "nodes_modes": every("modes"), "nodes_truenodeids": every("yes"),
        "nodes_falsenodeids": every("no"), "nodes_missing_value_tracks_true": every("missing"),
        f"{kind}_treeids": [leaf[0] for leaf in leaves],
        f"{kind}_nodeids": [leaf[1] for leaf in leaves],
        f"{kind}_ids": [leaf[2] for leaf in leaves],
        f"{kind}_weights": rng.uniform(0.1, 0.9, len(leaves)).tolist(),
    }  # fmt: skip


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("depth", [0, 1, 4])
def test_tree_regressors(how: str, depth: int) -> None:
    rng = np.random.default_rng([depth, len(how)])
    found = forest("target", rng, [0, 1], depth)
    base = rng.standard_normal(2).tolist()
    one = model(
        "TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, n_targets=2, aggregate_function=how,
        base_values=base, **found,
    )  # fmt: skip
    assert_as_onnxruntime(one, depth, missing=True)


@pytest.mark.parametrize("how", range(4))
def test_targets_that_no_leaf_names_are_zero(how: int) -> None:
    """The first tree has leaves of two targets, the second one of the first only."""
    one = model(
        "TreeEnsemble", {"y": TensorProto.FLOAT}, n_targets=3, aggregate_function=how,
        nodes_featureids=[0, 1], nodes_splits=numpy_helper.from_array(np.zeros(2, np.float32)),
        nodes_modes=numpy_helper.from_array(np.zeros(2, np.uint8)), nodes_truenodeids=[0, 2],
        nodes_trueleafs=[1, 1], nodes_falsenodeids=[1, 3], nodes_falseleafs=[1, 1],
        tree_roots=[0, 1], leaf_targetids=[0, 1, 0, 0],
        leaf_weights=numpy_helper.from_array(np.array([2, 3, -5, 7], np.float32)),
    )  # fmt: skip
    one.opset_import[1].version = 5
    assert_as_onnxruntime(one)


@pytest.mark.parametrize("how", ["MIN", "MAX"])
def test_older_trees_also_pass_targets_over(how: str) -> None:
    found = forest("target", np.random.default_rng(5), [0, 2], 2)
    outputs = {"y": TensorProto.FLOAT}
    assert_as_onnxruntime(
        model("TreeEnsembleRegressor", outputs, n_targets=4, aggregate_function=how, **found)
    )


@pytest.mark.parametrize("after", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("classes", [[0, 1, 2], [0], [1]])
def test_tree_classifiers(after: str, classes: list[int], shift: float) -> None:
    found = forest("class", np.random.default_rng(len(classes)), classes, 3)
    found["class_weights"] = [weight - shift for weight in found["class_weights"]]
    labels = [3, 8, 5][: max(2, len(classes))]
    one = model(
        "TreeEnsembleClassifier", LABELLED, classlabels_int64s=labels, post_transform=after, **found
    )
    assert_as_onnxruntime(one)


def test_trees_of_two_classes_that_both_have_weights() -> None:
    """onnxruntime gives the same scores, and numbers that are no labels."""
    found = forest("class", np.random.default_rng(2), [0, 1], 3)
    one = model("TreeEnsembleClassifier", LABELLED, classlabels_int64s=[3, 8], **found)
    x = np.random.default_rng(0).standard_normal((7, FEATURES), np.float32)
    labels, scores = run_network(partition(optimize(load(one))), {"x": x})
    session = peer(one)
    np.testing.assert_allclose(scores, session.run(["scores"], {"x": x})[0], rtol=2e-5)
    np.testing.assert_array_equal(labels, np.array([3, 8])[scores.argmax(1)])


def test_two_weights_of_a_leaf_for_one_target_are_refused() -> None:
    found = forest("target", np.random.default_rng(2), [0, 0], 2)
    with pytest.raises(UnsupportedModel, match="give a leaf one weight of each result"):
        load(model("TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, n_targets=1, **found))


@pytest.mark.parametrize("name", ["nodes_truenodeids", "target_ids"])
def test_attributes_that_name_what_there_is_not_are_the_fault_of_the_file(name: str) -> None:
    found = forest("target", np.random.default_rng(2), [0], 3)
    found[name] = [1000 + number for number in found[name]]
    with pytest.raises(ForeignFile, match="not valid: TreeEnsembleRegressor y: ") as caught:
        load(model("TreeEnsembleRegressor", {"y": TensorProto.FLOAT}, **found))
    assert isinstance(caught.value.__cause__, LookupError)


def test_linear_models() -> None:
    rng = np.random.default_rng(3)
    weights = {
        "coefficients": rng.standard_normal(3 * FEATURES).tolist(),
        "intercepts": rng.standard_normal(3).tolist(),
    }
    assert_as_onnxruntime(model("LinearRegressor", {"y": TensorProto.FLOAT}, targets=3, **weights))
    for after in ("NONE", "LOGISTIC", "SOFTMAX"):
        assert_as_onnxruntime(
            model(
                "LinearClassifier",
                LABELLED,
                classlabels_ints=[4, 2, 9],
                post_transform=after,
                multi_class=1,
                **weights,
            )  # fmt: skip
        )


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vector_regressors(kernel: str) -> None:
    rng = np.random.default_rng(4)
    assert_as_onnxruntime(
        model(
            "SVMRegressor",
            {"y": TensorProto.FLOAT},
            kernel_type=kernel,
            kernel_params=[0.2, 0.3, 3.0],
            n_supports=4,
            rho=[0.7],
            coefficients=rng.standard_normal(4).tolist(),
            support_vectors=rng.standard_normal(4 * FEATURES).tolist(),
        )  # fmt: skip
    )


def classifier(classes: int, kernel: str, *, pairwise: bool = False, **more: Any) -> ModelProto:
    """A support vector machine with another number of vectors for each class."""
    rng = np.random.default_rng([classes, len(kernel)])
    each = [3, 1, 4, 2][:classes]
    pairs = classes * (classes - 1) // 2
    if pairwise:
        more["prob_a"] = (-1 - rng.random(pairs)).tolist()
        more["prob_b"] = rng.standard_normal(pairs).tolist()
    return model(
        "SVMClassifier", LABELLED, classlabels_ints=[3, 8, 5, 1][:classes], kernel_type=kernel,
        kernel_params=[0.2, 0.3, 2.0], vectors_per_class=each,
        rho=rng.standard_normal(pairs).tolist(),
        coefficients=rng.standard_normal((classes - 1) * sum(each)).tolist(),
        support_vectors=rng.standard_normal(sum(each) * FEATURES).tolist(), **more,
    )  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 4])
def test_support_vectors_vote(classes: int, kernel: str) -> None:
    assert_as_onnxruntime(classifier(classes, kernel))


@pytest.mark.parametrize("after", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("classes", [2, 3])
def test_support_vectors_give_probabilities(classes: int, after: str) -> None:
    assert_as_onnxruntime(classifier(classes, "RBF", pairwise=True, post_transform=after))


def test_classifiers_of_features_instead_of_vectors() -> None:
    rng = np.random.default_rng(7)
    given: dict[str, Any] = {
        "kernel_params": [0.0, 0.0, 0.0],
        "rho": [0.3],
        "post_transform": "SOFTMAX",
    }
    weights = rng.standard_normal(3 * FEATURES).tolist()
    assert_as_onnxruntime(
        model("SVMClassifier", LABELLED, classlabels_ints=[4, 0, 9], coefficients=weights, **given)
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"classlabels_ints": [1]}, "give at least two classes"),
        ({"vectors_per_class": [1, 2]}, "give one number for each of 3 classes"),
        ({"rho": [1.0]}, "give one for each of 3 pairs of classes"),
        ({"prob_a": [1.0]}, "give one for each of 3 pairs of classes"),
    ],
)
def test_support_vectors_that_do_not_fit_are_refused(more: dict[str, Any], said: str) -> None:
    one = classifier(3, "RBF")
    (node,) = one.graph.node
    kept = [a for a in node.attribute if a.name not in more]
    del node.attribute[:]
    node.attribute.extend([*kept, *(helper.make_attribute(*item) for item in more.items())])
    with pytest.raises(UnsupportedModel, match=said):
        load(one)


def test_features() -> None:
    rng, floats = np.random.default_rng(5), {"y": TensorProto.FLOAT}
    each = rng.standard_normal(FEATURES).tolist()
    assert_as_onnxruntime(model("Scaler", floats, offset=each, scale=each))
    assert_as_onnxruntime(model("Binarizer", floats, threshold=0.25))
    for norm in ("MAX", "L1", "L2"):
        assert_as_onnxruntime(model("Normalizer", floats, norm=norm))
    given = {"imputed_value_floats": each, "replaced_value_float": float("nan")}
    assert_as_onnxruntime(model("Imputer", floats, **given), missing=True)


@pytest.mark.parametrize("columns", [FEATURES - 2, FEATURES, FEATURES + 3])
def test_groups_of_features_have_as_many_as_stated(columns: int) -> None:
    made = model("FeatureVectorizer", {"y": TensorProto.FLOAT}, inputdimensions=[columns])
    assert_as_onnxruntime(made)


def test_groups_may_have_any_number_of_features(rng: np.random.Generator) -> None:
    made = model("FeatureVectorizer", {"y": TensorProto.FLOAT}, inputdimensions=[4])
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "f"
    graph = import_sized(made, f=(2, 6))
    assert_same_at(made, graph, rng, [{"f": 2}, {"f": 4}, {"f": 6}])


def test_texts_are_refused_if_they_are_read() -> None:
    outputs = {"label": TensorProto.STRING, "scores": TensorProto.FLOAT}
    texts = model(
        "LinearClassifier", outputs, classlabels_strings=["a", "b"],
        coefficients=[1.0] * 2 * FEATURES, intercepts=[0.0, 0.0],
    )  # fmt: skip
    with pytest.raises(UnsupportedModel, match="or remove the output of labels"):
        load(texts)
    del texts.graph.output[0]
    assert_as_onnxruntime(texts)


def test_labels_of_all_bits() -> None:
    most = (1 << 53) + 1
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[1], values_int64s=[10],
        default_int64=most,
    )  # fmt: skip
    x, y = (helper.make_tensor_value_info(name, TensorProto.INT64, (2,)) for name in "xy")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 2)]
    one = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets)
    [found] = run_network(partition(optimize(load(one))), {"x": np.asarray([1, 5])})
    assert found.tolist() == [10, most]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("shape", [(FEATURES,), (7, FEATURES)])
def test_features_of_any_type(shape: tuple[int, ...], dtype: str) -> None:
    rng, floats = np.random.default_rng(6), {"y": TensorProto.FLOAT}
    x = rng.integers(-3, 4, shape).astype(dtype)
    each = rng.standard_normal(FEATURES).tolist()
    assert_as_onnxruntime(model("Scaler", floats, x, offset=each, scale=each), x=x)
    for norm in ("MAX", "L1", "L2"):
        assert_as_onnxruntime(model("Normalizer", floats, x, norm=norm), x=x)


def test_scaled_doubles_are_rounded_once() -> None:
    x = 1e9 + np.arange(10).reshape(2, FEATURES) / 8
    made = model("Scaler", {"y": TensorProto.FLOAT}, x, offset=[1e9], scale=[2.0])
    assert_as_onnxruntime(made, x=x)


def test_unknown_categories_are_zeros(caplog: pytest.LogCaptureFixture) -> None:
    """As scikit-learn's encoders are exported; onnxruntime fails at what is not known."""
    x = np.array([[2, 0], [5, 2]])
    made = model("OneHotEncoder", {"y": TensorProto.FLOAT}, x, cats_int64s=[0, 2, 5], zeros=0)
    assert_as_onnxruntime(made, x=x)
    assert "categories that are not known become zeros" in caplog.text
    (found,) = run_network(partition(optimize(load(made))), {"x": np.array([[2, 1], [7, 0]])})
    np.testing.assert_array_equal(found, [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 0]]])
