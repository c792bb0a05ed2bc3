"""Where pools found their maxima, and values put back there, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph.ops import Computed, Unpool
from tests.frontend.models import graph_model, node, operator_model
from tests.graph.executor import (
    Array,
    assert_same_as_onnxruntime,
    compiled,
    run_network,
    run_reference,
)
from tests.peer import peer

PLACES = {"y1": TensorProto.INT64}
POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), {"kernel_shape": [3]}),
    ((1, 2, 7, 5), {"kernel_shape": [2, 3], "strides": [2, 1]}),
    ((2, 1, 6, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 3, 8, 5), {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    ((1, 2, 7, 7), {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    ((1, 2, 5, 4, 3), {"kernel_shape": [2, 1, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 1, 1, 1), {"kernel_shape": [1, 1]}),
]


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("shape", "attributes"), POOLS)
def test_places_of_maxima(
    shape: tuple[int, ...], attributes: dict[str, Any], order: int, rng: np.random.Generator
) -> None:
    model = operator_model(
        "MaxPool", [shape], outputs=2, types=PLACES, storage_order=order, **attributes
    )
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_first_row_of_equal_maxima_counts(rank: int, order: int) -> None:
    model = operator_model(
        "MaxPool", [(1, 2, *(5, 6, 7)[:rank])], outputs=2, types=PLACES, storage_order=order,
        kernel_shape=[3] * rank, strides=[2] * rank,
    )  # fmt: skip
    x = np.random.default_rng(0).integers(-1, 2, (1, 2, *(5, 6, 7)[:rank])).astype(np.float32)
    network = compiled(model)
    [_, want] = peer(model).run(None, {"x0": x})
    [_, got] = run_network(network, {"x0": x})
    np.testing.assert_array_equal(got, want)


def test_the_first_of_equal_maxima_counts() -> None:
    network = compiled(
        operator_model("MaxPool", [(1, 2, 3, 3)], outputs=2, types=PLACES, kernel_shape=[2, 2])
    )
    _, places = run_network(network, {"x0": np.zeros((1, 2, 3, 3), np.float32)})
    np.testing.assert_array_equal(places.reshape(-1), [0, 1, 3, 4, 9, 10, 12, 13])


def test_a_nan_is_found() -> None:
    data = np.array([[[1, np.nan, 3, 2]]], np.float32)
    network = compiled(
        operator_model("MaxPool", [(1, 1, 4)], outputs=2, types=PLACES, kernel_shape=[4])
    )
    best, places = run_network(network, {"x0": data})
    assert np.isnan(best).all() and places.reshape(-1) == [1]


def unpooled(shape: tuple[int, ...], size: tuple[int, ...] | None, **pool: Any) -> ModelProto:
    """A pool, a function of its maxima, and these put back."""
    nodes = [
        node("MaxPool", ["x"], ["best", "places"], **pool),
        node("Mul", ["best", "best"], ["square"]),
        node("MaxUnpool", ["square", "places", "size"][: 2 + (size is not None)], ["y"], **pool),
    ]
    held: dict[str, Array] = {} if size is None else {"size": np.asarray(size, np.int64)}
    return graph_model(nodes, {"x": shape}, ["y"], held)


@pytest.mark.parametrize(
    ("shape", "size", "pool"),
    [
        ((2, 3, 6, 8), None, {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 2, 7, 5), (1, 2, 7, 5), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 2, 7), None, {"kernel_shape": [3], "strides": [2]}),
        ((1, 1, 4, 4, 4), None, {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}),
    ],
)
def test_maxima_are_put_back_by_their_own_windows(
    shape: tuple[int, ...], size: tuple[int, ...] | None, pool: dict[str, Any],
    rng: np.random.Generator,
) -> None:  # fmt: skip
    model = unpooled(shape, size, **pool)
    assert any(isinstance(n.op, Unpool) for n in load(model).nodes)
    assert_same_as_onnxruntime(model, rng)


@pytest.mark.parametrize("size", [None, (2, 3, 5, 8), (2, 3, 8, 6)])
def test_values_are_written_to_given_places(
    size: tuple[int, ...] | None, rng: np.random.Generator
) -> None:
    """The size is reached by cutting and by zeros."""
    windows: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 3]}
    one = node("MaxUnpool", ["x", "places", "size"][: 2 + (size is not None)], ["y"], **windows)
    shape, plane = (2, 3, 2, 2), (5, 5)
    held: dict[str, Array] = {} if size is None else {"size": np.asarray(size, np.int64)}
    types = {"places": TensorProto.INT64}
    model = graph_model([one], {"x": shape, "places": shape}, ["y"], held, types=types)
    assert any(isinstance(n.op, Computed) for n in load(model).nodes)
    inside = np.stack([rng.permutation(25)[:4] for _ in range(6)]) + 25 * np.arange(6)[:, None]
    feeds: dict[str, Array] = {
        "x": rng.standard_normal(shape, np.float32), "places": inside.reshape(shape),
    }  # fmt: skip
    (got,) = run_network(compiled(model), feeds)
    free = model if size is None else graph_model(
        [node("MaxUnpool", ["x", "places"], ["y"], **windows)],
        {"x": shape, "places": shape}, ["y"], types=types,
    )  # fmt: skip
    (whole,) = run_reference(free, feeds)
    wanted = np.zeros((2, 3, 9, 9), np.float32)
    wanted[:, :, : plane[0], : plane[1]] = whole
    height, width = plane if size is None else size[2:]
    np.testing.assert_array_equal(got, wanted[:, :, :height, :width])
