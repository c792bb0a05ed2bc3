"""Values that passes add do not take the names of the model's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph.choices import Choices
from ansorpy.graph.optimize import ARRANGING, SIMPLIFYING
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def scaled_operands() -> tuple[Net, str]:
    net = Net(x=(2, 3, 8), k=(2, 8, 5))
    return net, net.op("MatMul", net.op("Mul", "x", net.constant(0.25)), "k")


def pooled_product() -> tuple[Net, str]:
    net = Net(x=(1, 8, 6, 6))
    product = net.conv(net.conv("x", 8, 8, 3), 8, 4)
    return net, net.op("AveragePool", product, kernel_shape=[2, 2], strides=[2, 2])


def turned_norm() -> tuple[Net, str]:
    net = Net(x=(1, 6, 6, 8))
    rows = net.op("LayerNormalization", "x", net.constant(np.ones(8)))
    rows = net.op("Add", net.op("Mul", rows, net.normal(1, 1, 8)), net.normal(8))
    split = net.reshape(rows, 1, 2, 3, 2, 3, 8)
    return net, net.reshape(net.op("Transpose", split, perm=[0, 1, 3, 2, 4, 5]), 4, 9, 8)


def siblings() -> tuple[Net, str]:
    net = Net(x=(4, 8))
    a, b = (net.op("Softmax", net.gemm("x", 8, 16), axis=-1) for _ in range(2))
    return net, net.op("Sub", a, b)


def dilated() -> tuple[Net, str]:
    net = Net(x=(1, 4, 6, 6))
    return net, net.conv("x", 4, 5, 3, dilations=[9, 9], pads=[9] * 4)


def scaled_product() -> tuple[Net, str]:
    net = Net(x=(1, 4, 5, 5))
    shifted = net.op("Add", net.conv("x", 4, 5, bias=False), net.normal(5, 1, 1))
    return net, net.op("Mul", shifted, net.normal(5, 1, 1))


def reshaped() -> tuple[Net, str]:
    net = Net(x=(2, 3, 8), y=(6, 4, 2))
    wide = net.reshape(net.op("MatMul", "x", net.normal(8, 8)), 6, 4, 2)
    return net, net.op("Add", net.op("Tanh", wide), "y")


NETS = (scaled_operands, pooled_product, turned_norm, siblings, dilated, scaled_product, reshaped)


@pytest.mark.parametrize("make", NETS, ids=lambda make: make.__name__)
def test_a_later_value_may_have_the_name_that_a_pass_would_give(
    make: Callable[[], tuple[Net, str]],
) -> None:
    net, value = make()
    model = net.model(net.op("Neg", value))
    last = model.graph.node[-1]
    graph = load(model)
    own, added = {*graph.types}, set[str]()
    for run in SIMPLIFYING:
        graph = run(graph)
        added |= graph.types.keys() - own
    for arrange in ARRANGING:
        graph = arrange(graph, Choices())
        added |= graph.types.keys() - own
    assert added
    for name in sorted(added):
        last.output[0] = model.graph.output[0].name = name
        assert_same_as_onnxruntime(model, np.random.default_rng(8))
