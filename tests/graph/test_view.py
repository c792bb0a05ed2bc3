"""The shapes under which kernels see dense tensors, and what they read in place."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.graph.network import Call, Network
from tests.graph.executor import assert_same_as_onnxruntime, compiled
from tests.graph.nets import Net

RNG = np.random.default_rng(6)


def one(network: Network, part: str) -> Call:
    (call,) = (call for call in network.calls if part in call.name)
    return call


def shapes(call: Call) -> list[tuple[int, ...]]:
    return [op.shape for op in call.dag.args]


def test_a_product_of_rows_is_one_matrix_product() -> None:
    net = Net(x=(2, 3, 5), r=(2, 3, 7))
    y = net.op("Add", net.op("MatMul", "x", net.normal(5, 7)), net.normal(7))
    network = assert_same_as_onnxruntime(net.model(net.op("Add", y, "r")), RNG)
    assert shapes(one(network, "matmul")) == [(6, 5), (6, 7), (5, 7), (7,)]


@pytest.mark.parametrize(("weight", "bias"), [((2, 5, 7), (7,)), ((5, 7), (3, 7))])
def test_other_products_keep_their_axes(weight: tuple[int, ...], bias: tuple[int, ...]) -> None:
    net = Net(x=(2, 3, 5))
    y = net.op("Add", net.op("MatMul", "x", net.normal(*weight)), net.normal(*bias))
    network = assert_same_as_onnxruntime(net.model(y), RNG)
    assert shapes(one(network, "matmul"))[0] == (2, 3, 5)


def test_a_product_reads_both_operands_turned() -> None:
    net = Net(q=(2, 3, 4, 5), k=(2, 6, 4, 5))
    q = net.op("Transpose", "q", perm=[0, 2, 1, 3])
    k = net.op("Transpose", "k", perm=[0, 2, 3, 1])
    network = assert_same_as_onnxruntime(net.model(net.op("MatMul", q, k)), RNG)
    assert len(network.calls) == 1


def test_a_constant_read_by_several_kernels_is_one_array() -> None:
    net = Net(x=(3, 4))
    weight = net.normal(4, 4)
    y = net.op("MatMul", net.relu(net.op("MatMul", "x", weight)), weight)
    network = compiled(net.model(y))
    held = [array for call in network.calls for array in call.constants.values()]
    assert len(held) == 2 and held[0] is held[1]
