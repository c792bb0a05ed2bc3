"""Arithmetic moves in front of a reshape where its operands can follow."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph.passes.simplify_moves import simplify_moves
from ansorpy.graph.passes.sink_reshapes import sink_reshapes
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def labels(net: Net, *outputs: str) -> list[str]:
    """What is done, in order, once the reshapes are moved; constants are reshaped beforehand."""
    model = net.model(*outputs)
    assert_same_as_onnxruntime(model, np.random.default_rng(4))
    graph = simplify_moves(sink_reshapes(simplify_moves(load(model))))
    return [node.op.label for node in graph.nodes]


@pytest.mark.parametrize("shape", [(), (1,), (8,), (1, 8), (6, 1), (6, 8)])
def test_constants_follow(shape: tuple[int, ...]) -> None:
    net = Net(x=(2, 3, 8))
    rows = net.reshape(net.op("Exp", "x"), 6, 8)
    assert labels(net, net.op("Mul", rows, net.normal(*shape))) == ["exp", "mul", "reshape"]


def test_a_chain_ends_in_the_shape_that_it_began_with() -> None:
    net = Net(x=(2, 3, 8))
    rows = net.reshape(net.op("Exp", "x"), 6, 8)
    scaled = net.op("Add", net.op("Mul", rows, net.normal(8)), net.normal(8))
    back = net.reshape(scaled, 2, 3, 8)
    assert labels(net, net.op("Add", back, "x")) == ["exp", "mul", "add", "add"]


def test_a_batch_norm_behind_a_product_is_in_its_weights() -> None:
    net = Net(x=(2, 3, 8))
    rows = net.reshape(net.op("MatMul", "x", net.normal(8, 16)), 6, 16)
    norm = net.op("Add", net.op("Mul", rows, net.normal(16)), net.normal(16))
    network = assert_same_as_onnxruntime(
        net.model(net.reshape(norm, 2, 3, 16)), np.random.default_rng(4)
    )
    assert [c.name for c in network.calls] == ["matmul_add_2x3x16"]


def test_an_operand_that_varies_within_a_group_of_axes_stays() -> None:
    net = Net(x=(2, 3, 8))
    split = net.reshape(net.op("Exp", "x"), 2, 3, 2, 4)
    found = labels(net, net.op("Mul", split, net.normal(4)))
    assert found == ["exp", "reshape", "mul"]


def test_what_others_read_stays() -> None:
    net = Net(x=(2, 3, 8))
    rows = net.reshape(net.op("Exp", "x"), 6, 8)
    scaled = net.op("Mul", rows, net.normal(8))
    product = net.op("MatMul", rows, net.normal(8, 4))
    assert labels(net, scaled, product) == ["exp", "reshape", "mul", "matmul"]


def test_an_activation_that_reads_its_operand_thrice_is_in_the_products_kernel() -> None:
    net = Net(x=(6, 8))
    x = net.reshape(net.op("MatMul", "x", net.normal(8, 16)), 2, 3, 16)
    cube = net.op("Mul", net.op("Mul", x, x), x)
    y = net.op("Mul", x, net.op("Tanh", net.op("Add", x, cube)))
    network = assert_same_as_onnxruntime(net.model(y), np.random.default_rng(4))
    assert len(network.calls) == 1


def test_what_comes_before_a_reshape_may_be_a_long_chain() -> None:
    net, x = Net(x=(4, 6)), "x"
    for _ in range(600):
        x = net.op("Tanh", x)
    rows = net.reshape(x, 24)
    graph = sink_reshapes(load(net.model(net.op("Mul", rows, net.op("Sigmoid", rows)))))
    assert [node.op.label for node in graph.nodes[-3:]] == ["reshape", "sigmoid", "mul"]


@pytest.mark.parametrize("groups", [1, 2])
def test_a_norm_of_groups_is_one_of_the_image_as_it_is_stored(groups: int) -> None:
    net = Net(x=(2, 3, 5, 7))
    image = net.conv("x", 3, 8, 3)
    one, zero = net.constant(np.ones(groups)), net.constant(np.zeros(groups))
    flat = net.op("InstanceNormalization", net.reshape(image, 2, groups, -1), one, zero)
    back = net.op("Mul", net.reshape(flat, 2, 8, 5, 7), net.normal(8, 1, 1))
    back = net.op("Mul", back, net.op("Sigmoid", back))
    network = assert_same_as_onnxruntime(
        net.model(net.relu(net.conv(back, 8, 4, 1))), np.random.default_rng(4)
    )
    assert not any("transpose_8x" in c.name for c in network.calls)
    assert len(network.calls) == 4


def test_conditions_follow_too() -> None:
    net = Net(x=(2, 3, 8))
    rows = net.reshape(net.op("Exp", "x"), 6, 8)
    kept = net.constant(np.arange(8) % 3 == 0, bool)
    found = labels(net, net.op("Where", kept, rows, net.constant(0.0)))
    assert found == ["exp", "where", "reshape"]
