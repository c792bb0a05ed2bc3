"""Numbers that scale the operands of a product scale its result."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import partition
from ansorpy.graph.passes.sink_scales import sink_scales
from tests.frontend.models import graph_model, node
from tests.graph.executor import assert_same_as_onnxruntime, run_network
from tests.graph.nets import Net


def labels(net: Net, *outputs: str) -> list[str]:
    return labels_of(net.model(*outputs))


def labels_of(model: ModelProto) -> list[str]:
    assert_same_as_onnxruntime(model, np.random.default_rng(4))
    return [node.op.label for node in sink_scales(load(model)).nodes]


@pytest.mark.parametrize("fn", ["Mul", "Div"])
def test_scales_of_both_operands_become_one(fn: str) -> None:
    net = Net(q=(2, 3, 8), k=(2, 5, 8))
    q = net.op(fn, "q", net.constant(0.25))
    k = net.op("Transpose", net.op("Mul", net.constant([3.0]), "k"), perm=[0, 2, 1])
    assert labels(net, net.op("MatMul", q, k)) == ["transpose", "matmul", "mul"]


def test_attention_takes_the_scale() -> None:
    net = Net(q=(2, 3, 8), k=(2, 5, 8), v=(2, 5, 8))
    q, k = (net.op("Mul", x, net.constant(0.5)) for x in "qk")
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 2, 1]))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), "v")
    network = assert_same_as_onnxruntime(net.model(mixed), np.random.default_rng(4))
    assert [c.name for c in network.calls] == ["transpose_attention_2x3x8"]


def test_what_is_read_elsewhere_or_no_number_stays() -> None:
    net = Net(q=(2, 3, 8), k=(2, 8, 5))
    shared = net.op("Mul", "q", net.constant(0.25))
    rows = net.op("Mul", "k", net.normal(8, 1))
    product = net.op("MatMul", shared, rows)
    assert labels(net, product, net.relu(shared)) == ["mul", "mul", "matmul", "relu"]


def test_a_square_is_scaled_by_neither_of_its_operands() -> None:
    net = Net(q=(2, 4, 4))
    scaled = net.op("Mul", "q", net.constant(0.25))
    assert labels(net, net.op("MatMul", scaled, scaled)) == ["mul", "matmul"]


def test_scales_of_integers_stay() -> None:
    nodes = [
        node("Mul", ["q", "c"], ["a"]), node("Mul", ["k", "c"], ["b"]),
        node("MatMul", ["a", "b"], ["y"]),
    ]  # fmt: skip
    kinds = dict.fromkeys(["q", "k", "y"], TensorProto.INT32)
    held = {"c": np.asarray((1 << 31) - 1, np.int32)}
    model = graph_model(nodes, {"q": (2, 8), "k": (8, 3)}, ["y"], held, types=kinds)
    assert labels_of(model) == ["mul", "mul", "matmul"]


@pytest.mark.parametrize(
    ("fn", "number", "of_all", "found"),
    [
        ("Mul", 1e-25, 1e12, ["mul", "matmul", "mul"]),
        ("Div", 1e-40, 1e-39, ["div", "div", "matmul"]),
    ],
)
def test_a_factor_out_of_range_is_not_formed(
    fn: str, number: float, of_all: float, found: list[str]
) -> None:
    net = Net(q=(2, 8), k=(8, 3))
    q, k = (net.op(fn, x, net.constant(number)) for x in "qk")
    graph = sink_scales(load(net.model(net.op("MatMul", q, k))))
    assert [node.op.label for node in graph.nodes] == found
    feeds = {"q": np.full((2, 8), of_all, np.float32), "k": np.full((8, 3), of_all, np.float32)}
    [got] = run_network(partition(graph), feeds)
    scaled = of_all * number if fn == "Mul" else of_all / number
    np.testing.assert_allclose(got, 8 * scaled**2, rtol=1e-4)
