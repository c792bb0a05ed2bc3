"""The largest and smallest elements along an axis, with their places, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.errors import UnsupportedModel
from ansorpy.frontend.onnx import load
from tests.frontend.models import graph_model, node
from tests.graph.executor import Array, assert_same_as_onnxruntime, compiled, run_network
from tests.peer import peer

Shape = tuple[int, ...]


def top(
    shape: Shape, count: int, opset: int = 17, kind: int = TensorProto.FLOAT, **attributes: Any
) -> ModelProto:
    held: dict[str, Array] = {"k": np.asarray([count])} if opset >= 10 else {}
    given = attributes if held else {**attributes, "k": count}
    one = node("TopK", ["x", *held], ["values", "places"], **given)
    types = {"x": kind, "values": kind, "places": TensorProto.INT64}
    return graph_model([one], {"x": shape}, ["values", "places"], held, opset, types)


@pytest.mark.parametrize("opset", [9, 10, 11, 17])
@pytest.mark.parametrize(("shape", "axis", "count"), [
    ((9,), 0, 3), ((3, 8), -1, 2), ((2, 7, 5), 1, 7), ((4, 3, 2), 0, 1), ((3, 1), 1, 1),
])  # fmt: skip
def test_the_largest_come_first(
    shape: Shape, axis: int, count: int, opset: int, rng: np.random.Generator
) -> None:
    assert_same_as_onnxruntime(top(shape, count, opset, axis=axis), rng)


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "INT64", "INT32"])
@pytest.mark.parametrize("largest", [0, 1])
def test_of_equal_elements_the_first_comes_first(
    kind: str, largest: int, rng: np.random.Generator
) -> None:
    code = getattr(TensorProto, kind)
    model = top((3, 17, 2), 11, kind=code, axis=1, largest=largest)
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("largest", [0, 1])
def test_infinities_and_zeros_are_ranked(largest: int) -> None:
    x = np.asarray([[-np.inf, 0.0, np.inf, -0.0, -np.inf, 3.0, np.inf, -5.0]], np.float32)
    model = top(x.shape, 6, largest=largest)
    session = peer(model)
    for got, want in zip(run_network(compiled(model), {"x": x}), session.run(None, {"x": x}),
                         strict=True):  # fmt: skip
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("largest", "order"), [(0, [2, 3, 0, 1, 4]), (1, [1, 4, 0, 3, 2])])
def test_what_is_no_number_is_above_all(largest: int, order: list[int]) -> None:
    x = np.asarray([[3.0, np.nan, -np.inf, 1.0, np.nan]], np.float32)
    values, places = run_network(compiled(top(x.shape, 5, largest=largest)), {"x": x})
    np.testing.assert_array_equal(places, [order])
    np.testing.assert_array_equal(values, x[:, order])


def test_none_of_them_is_nothing(rng: np.random.Generator) -> None:
    assert assert_same_as_onnxruntime(top((2, 5), 0), rng).calls == ()


def test_a_router_chooses_experts(rng: np.random.Generator) -> None:
    """The weights of each row's best two of eight products, as mixtures of experts use them."""
    nodes = [
        node("MatMul", ["x", "w"], ["scores"]),
        node("Softmax", ["scores"], ["shares"]),
        node("TopK", ["shares", "k"], ["best", "expert"]),
        node("ReduceSum", ["best", "axis"], ["total"]),
        node("Div", ["best", "total"], ["y"]),
    ]
    held: dict[str, Array] = {
        "w": rng.standard_normal((16, 8)).astype(np.float32),
        "k": np.asarray([2]),
        "axis": np.asarray([-1]),
    }
    types = {"expert": TensorProto.INT64}
    model = graph_model(nodes, {"x": (5, 16)}, ["y", "expert"], held, types=types)
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize(("n", "count"), [(1025, 3), (3001, 40), (2003, 2003)])
def test_axes_of_any_length(n: int, count: int, rng: np.random.Generator) -> None:
    assert_same_as_onnxruntime(top((2, n), count), rng)


def test_only_a_run_may_know_their_number(rng: np.random.Generator) -> None:
    one = node("TopK", ["x", "k"], ["values", "places"])
    types = {"k": TensorProto.INT64, "places": TensorProto.INT64}
    model = graph_model([one], {"x": (2, 5), "k": (1,)}, ["values", "places"], types=types)
    network, x = compiled(model), rng.standard_normal((2, 5)).astype(np.float32)
    for k in (0, 1, 5):
        values, places = run_network(network, {"x": x, "k": np.asarray([k])})
        np.testing.assert_array_equal(places, np.argsort(-x, axis=1)[:, :k])
        np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :k])


def test_no_more_are_asked_for_than_there_are() -> None:
    model = top((2, 5), 3)
    model.graph.initializer[0].raw_data = np.asarray([6]).tobytes()
    with pytest.raises(UnsupportedModel, match="the axis has 5 elements"):
        load(model)
