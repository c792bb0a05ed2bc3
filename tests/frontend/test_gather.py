"""Rows at indices that are only known at run time."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph.ops import Gather
from tests.frontend.models import graph_model, node
from tests.graph.executor import assert_same_as_onnxruntime, compiled, run_network
from tests.graph.nets import Net

TABLE = np.random.default_rng(2).standard_normal((5, 3, 4)).astype(np.float32)


def gathered(shape: tuple[int, ...], axis: int, kind: int = TensorProto.INT64) -> ModelProto:
    one = node("Gather", ["table", "at"], ["y"], axis=axis)
    return graph_model([one], {"at": shape}, ["y"], {"table": TABLE}, types={"at": kind})


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (1, 1, 2)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_may_have_any_shape_and_axis(shape: tuple[int, ...], axis: int) -> None:
    assert_same_as_onnxruntime(gathered(shape, axis), np.random.default_rng(1))


def test_indices_of_32_bits() -> None:
    assert_same_as_onnxruntime(gathered((6,), 1, TensorProto.INT32), np.random.default_rng(1))


def test_the_data_may_be_computed_too() -> None:
    nodes = [node("Exp", ["x"], ["e"]), node("Gather", ["e", "at"], ["y"], axis=1)]
    kinds = {"at": TensorProto.INT64}
    model = graph_model(nodes, {"x": (2, 4, 3), "at": (2, 2)}, ["y"], types=kinds)
    assert_same_as_onnxruntime(model, np.random.default_rng(1))


def test_an_index_outside_wraps_around() -> None:
    (y,) = run_network(compiled(gathered((3,), 0)), {"at": np.array([5, -6, 12])})
    np.testing.assert_array_equal(y, TABLE[[0, 4, 2]])


def test_an_embedding_is_one_kernel() -> None:
    names = {"words": (2, 3), "kinds": (2, 3)}
    nodes = [
        node("Gather", ["table", "words"], ["a"]),
        node("Gather", ["table", "kinds"], ["b"]),
        node("Add", ["a", "b"], ["s"]),
        node("Add", ["s", "place"], ["y"]),
    ]
    table = TABLE.reshape(15, 4)
    constants = {"table": table, "place": TABLE[:1]}
    kinds = dict.fromkeys(names, TensorProto.INT64)
    model = graph_model(nodes, names, ["y"], constants, types=kinds)
    network = assert_same_as_onnxruntime(model, np.random.default_rng(1))
    assert len(network.calls) == 1


def test_even_constant_indices_are_a_slice() -> None:
    net = Net(x=(3, 6))
    y = net.op("Gather", "x", net.constant([4, 2, 0], np.int64), axis=1)
    other = net.op("Gather", "x", net.constant([4, 2, 1], np.int64), axis=1)
    ops = [n.op for n in load(net.model(y, other)).nodes]
    assert [isinstance(op, Gather) for op in ops] == [False, True]


def test_images_are_gathered_in_the_models_order() -> None:
    net = Net(x=(2, 3, 5, 4))
    image = net.relu(net.conv("x", 3, 4, 3))
    y = net.op("Gather", image, net.constant([3, 0, 1], np.int64), axis=1)
    assert_same_as_onnxruntime(net.model(y, net.relu(image)), np.random.default_rng(1))
