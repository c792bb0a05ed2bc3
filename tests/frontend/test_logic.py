"""Comparisons, booleans and choices, alone and as the masks that exporters write."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, assert_same_as_onnxruntime, run_network

BOOL, INT64, FLOAT = TensorProto.BOOL, TensorProto.INT64, TensorProto.FLOAT


@pytest.mark.parametrize("kind", [FLOAT, INT64])
@pytest.mark.parametrize("op_type", ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_comparisons(op_type: str, kind: int) -> None:
    one = node(op_type, ["a", "b"], ["y"])
    kinds = {"a": kind, "b": kind, "y": BOOL}
    model = graph_model([one], {"a": (3, 5), "b": (5,)}, ["y"], types=kinds)
    network = assert_same_as_onnxruntime(model, np.random.default_rng(3))
    a = np.arange(15).reshape(3, 5).astype(network.inputs[0].dtype.numpy)
    (y,) = run_network(network, {"a": a, "b": a[1]})
    assert y[1].all() == ("Equal" in op_type)


@pytest.mark.parametrize("op_type", ["And", "Or"])
def test_truth_values_of_two(op_type: str) -> None:
    one = node(op_type, ["a", "b"], ["y"])
    kinds = dict.fromkeys("aby", BOOL)
    model = graph_model([one], {"a": (3, 5), "b": (3, 1)}, ["y"], types=kinds)
    assert_same_as_onnxruntime(model, np.random.default_rng(3))


def test_the_other_truth_value() -> None:
    model = graph_model(
        [node("Not", ["a"], ["y"])], {"a": (7,)}, ["y"], types=dict.fromkeys("ay", BOOL)
    )
    assert_same_as_onnxruntime(model, np.random.default_rng(3))


@pytest.mark.parametrize("kind", [FLOAT, INT64])
def test_where_broadcasts_all_three(kind: int) -> None:
    one = node("Where", ["c", "a", "b"], ["y"])
    shapes = {"c": (4, 1), "a": (2, 1, 3), "b": (3,)}
    kinds = {"c": BOOL, "a": kind, "b": kind, "y": kind}
    assert_same_as_onnxruntime(
        graph_model([one], shapes, ["y"], types=kinds), np.random.default_rng(3)
    )


def masked(fill: float) -> ModelProto:
    nodes = [
        node("Equal", ["mask", "zero"], ["dropped"]),
        node("Where", ["dropped", "fill", "x"], ["scores"]),
        node("Softmax", ["scores"], ["y"]),
    ]
    constants: dict[str, Array] = {"zero": np.zeros((), np.int64)}
    constants["fill"] = np.asarray(fill, np.float32)
    shapes = {"x": (2, 5, 7), "mask": (2, 1, 7)}
    return graph_model(nodes, shapes, ["y"], constants, types={"mask": INT64})


def test_a_mask_of_a_softmax() -> None:
    network = assert_same_as_onnxruntime(masked(-1e9), np.random.default_rng(3))
    assert len(network.calls) == 2


def test_literals_on_both_sides() -> None:
    one = node("Where", ["c", "one", "zero"], ["y"])
    constants = {"one": np.ones((), np.float32), "zero": np.zeros(1, np.float32)}
    model = graph_model([one], {"c": (3, 2)}, ["y"], constants, types={"c": BOOL})
    assert_same_as_onnxruntime(model, np.random.default_rng(3))


def test_a_condition_that_is_a_number_is_refused() -> None:
    model = graph_model([node("Where", ["x", "x", "x"], ["y"])], {"x": (3,)}, ["y"])
    with pytest.raises(UnsupportedModel, match="condition is not boolean"):
        load(model)
