"""Constants that add dimensions, lie behind collapsed ones, or meet tensors without any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, assert_same_as_onnxruntime

SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5,), (1, 1)),
    ((5,), (1, 5)),
    ((3, 5), (1, 1, 1, 1)),
    ((3, 5), (1, 1, 1, 5)),
    ((3, 5), (1, 3, 5)),
    ((3, 5), (2, 1, 1, 1)),
    ((), (1, 1)),
]


def followed(
    op_type: str, shape: tuple[int, ...], constant: Array, **attributes: Any
) -> ModelProto:
    nodes = [
        node("Mul", ["x", "c"], ["scaled"]),
        node("Relu", ["scaled"], ["positive"]),
        node(op_type, ["positive"], ["y"], **attributes),
    ]
    return graph_model(nodes, {"x": shape}, ["y"], {"c": constant})


@pytest.mark.parametrize("shape, constant", SHAPES)
@pytest.mark.parametrize("op_type", ["Softmax", "Transpose", "ReduceMax", "Neg"])
def test_a_constant_may_have_more_dimensions_than_what_is_computed(
    op_type: str, shape: tuple[int, ...], constant: tuple[int, ...], rng: np.random.Generator
) -> None:
    values = rng.uniform(0.5, 1.5, constant).astype(np.float32)
    axis: dict[str, Any] = {"axis": -1} if op_type == "Softmax" else {}
    assert_same_as_onnxruntime(followed(op_type, shape, values, **axis), rng)


def test_the_scale_of_an_attention_may_have_more_dimensions(rng: np.random.Generator) -> None:
    nodes = [
        node("MatMul", ["q", "k"], ["scores"]),
        node("Mul", ["scores", "c"], ["scaled"]),
        node("Softmax", ["scaled"], ["weights"], axis=-1),
        node("MatMul", ["weights", "v"], ["y"]),
    ]
    inputs = {"q": (5, 3), "k": (3, 7), "v": (7, 3)}
    constants = {"c": np.full((1, 1, 1), 0.4, np.float32)}
    assert_same_as_onnxruntime(graph_model(nodes, inputs, ["y"], constants), rng)


@pytest.mark.parametrize("constant", [(1, 6, 1), (1, 6, 17), (6, 17), (6, 1), (17,), (1, 1, 17)])
@pytest.mark.parametrize("batch", [1, 2])
def test_rows_of_constants_behind_a_product_of_rows(
    batch: int, constant: tuple[int, ...], rng: np.random.Generator
) -> None:
    nodes = [
        node("MatMul", ["x", "w"], ["product"]),
        node("Add", ["product", "c"], ["sum"]),
        node("Tanh", ["sum"], ["y"]),
    ]
    held = {"w": rng.standard_normal((4, 17)), "c": rng.standard_normal(constant)}
    constants = {name: value.astype(np.float32) for name, value in held.items()}
    model = graph_model(nodes, {"x": (batch, 6, 4)}, ["y"], constants)
    assert_same_as_onnxruntime(model, rng)


def test_rows_of_constants_beside_columns_of_data(rng: np.random.Generator) -> None:
    constants = {"c": rng.standard_normal((1, 6, 1)).astype(np.float32)}
    nodes = [node("Sum", ["x", "c", "z"], ["y"])]
    model = graph_model(nodes, {"x": (1, 6, 17), "z": (17,)}, ["y"], constants)
    assert_same_as_onnxruntime(model, rng)


def test_what_has_no_dimensions_is_computed_with(rng: np.random.Generator) -> None:
    nodes = [
        node("ReduceMean", ["x"], ["mean"], keepdims=0),
        node("Exp", ["mean"], ["e"]),
        node("Mul", ["e", "s"], ["y"]),
    ]
    assert_same_as_onnxruntime(graph_model(nodes, {"x": (3, 5), "s": ()}, ["y"]), rng)
