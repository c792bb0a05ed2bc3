"""Averages move in front of products of single pixels, where that saves work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.frontend.models import graph_model
from tests.graph.executor import assert_same_as_onnxruntime, compiled
from tests.graph.nets import Net


def order(net: Net, y: str, *more: str) -> list[str]:
    """The pools and convolutions in the order they run."""
    network = assert_same_as_onnxruntime(net.model(y, *more), np.random.default_rng(3))
    names = (part for call in network.calls for part in call.name.split("_"))
    return [n for n in names if "conv" in n or "pool" in n]


def average(net: Net, x: str, k: int = 2, **rest: Any) -> str:
    return net.op(
        "AveragePool", x, kernel_shape=[k, k], strides=rest.pop("strides", [k, k]), **rest
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_an_average_moves_in_front_of_a_pointwise_convolution(bias: bool, groups: int) -> None:
    net = Net(x=(1, 8, 6, 5))
    x = net.relu(net.conv("x", 8, 8, 3))
    y = average(net, net.conv(x, 8, 4, 1, groups, bias=bias))
    kind = "groupconv1x1" if groups > 1 else "conv1x1"
    assert order(net, net.op("GlobalMaxPool", y)) == ["conv3x3", "sumpool2x2s2", kind]


@pytest.mark.parametrize(
    "rest", [{"strides": [1, 1]}, {"pads": [1] * 4}, {"pads": [1] * 4, "count_include_pad": 1}]
)
def test_windows_that_overlap_or_meet_padding_stay(rest: dict[str, Any]) -> None:
    net = Net(x=(1, 8, 6, 6))
    y = average(net, net.conv(net.relu(net.conv("x", 8, 8, 3)), 8, 4), **rest)
    assert order(net, net.op("GlobalMaxPool", y))[1] == "conv1x1"


def test_an_average_of_half_precision_stays() -> None:
    net = Net(x=(1, 8, 6, 6))
    y = average(net, net.conv("x", 8, 4))
    held = {name: array.astype(np.float16) for name, array in net.constants.items()}
    types = dict.fromkeys(("x", y), TensorProto.FLOAT16)
    network = compiled(graph_model(net.nodes, net.inputs, [y], held, types=types))
    names = "_".join(call.name for call in network.calls)
    assert names.index("conv1x1") < names.index("sumpool2x2s2")


def test_a_product_that_is_read_elsewhere_stays() -> None:
    net = Net(x=(1, 8, 6, 6))
    x = net.conv(net.relu(net.conv("x", 8, 8, 3)), 8, 4)
    assert order(net, average(net, x), net.op("Tanh", x))[1] == "conv1x1"


def test_windows_of_taps_and_maxima_stay() -> None:
    net = Net(x=(1, 8, 6, 6))
    a = average(net, net.conv("x", 8, 4, 3))
    b = net.op("MaxPool", net.conv("x", 8, 4), kernel_shape=[2, 2], strides=[2, 2])
    found = order(net, net.op("Add", a, b))
    assert found.index("conv3x3") < found.index("sumpool2x2s2")
    assert found.index("conv1x1") < found.index("maxpool2x2s2")


def test_something_between_them_that_is_not_linear_stays() -> None:
    net = Net(x=(1, 8, 6, 6))
    y = average(net, net.relu(net.conv(net.relu(net.conv("x", 8, 8, 3)), 8, 4)))
    assert order(net, net.op("GlobalMaxPool", y))[1] == "conv1x1"
