"""Constant scales and shifts disappear into weights, and only where that is right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph.ir import Graph
from ansorpy.graph.passes.fold_scale import fold_scale
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def folded(net: Net, *outputs: str) -> Counter[str]:
    model = net.model(*outputs)
    assert_same_as_onnxruntime(model, np.random.default_rng(2))
    return labels(fold_scale(load(model)))


def labels(graph: Graph) -> Counter[str]:
    return Counter(node.op.label for node in graph.nodes)


def test_batch_norm_and_scales_after_a_convolution_leave_one_bias() -> None:
    net = Net(x=(2, 3, 5, 4))
    y = net.batch_norm(net.conv("x", 3, 6, 3), 6)
    y = net.op("Add", net.op("Mul", y, net.normal(6, 1, 1)), net.normal(1, 6, 1, 1))
    y = net.op("Sub", net.op("Mul", y, net.normal()), net.normal(6, 1, 1))
    assert folded(net, y) == {"conv": 1, "add": 1}


def test_a_scale_after_a_grouped_convolution_folds() -> None:
    net = Net(x=(2, 4, 5, 4))
    y = net.batch_norm(net.conv("x", 4, 6, 3, group=2, bias=False), 6)
    assert folded(net, y) == {"conv": 1, "add": 1}


def test_a_scale_of_columns_folds_into_a_matrix_product() -> None:
    net = Net(x=(3, 4))
    y = net.op("Mul", net.gemm("x", 4, 5), net.normal(5))
    assert folded(net, y) == {"matmul": 1, "add": 1}


def test_a_scale_of_rows_does_not_fold_into_a_matrix_product() -> None:
    net = Net(x=(3, 4))
    y = net.op("Mul", net.op("MatMul", "x", net.normal(4, 5)), net.normal(3, 1))
    assert folded(net, y) == {"matmul": 1, "mul": 1}


@pytest.mark.parametrize("shape", [(5, 4), (5, 1), (4,)])
def test_a_scale_of_pixels_does_not_fold_into_a_convolution(shape: tuple[int, ...]) -> None:
    net = Net(x=(1, 3, 5, 4))
    y = net.op("Mul", net.conv("x", 3, 6, 3, bias=False), net.normal(*shape))
    assert folded(net, y) == {"conv": 1, "mul": 1}


def test_a_convolution_read_twice_keeps_its_weights() -> None:
    net = Net(x=(1, 3, 5, 4))
    a = net.conv("x", 3, 6, 3, bias=False)
    y = net.op("Add", net.op("Mul", a, net.normal(6, 1, 1)), a)
    assert folded(net, y) == {"conv": 1, "mul": 1, "add": 1}


def test_a_value_that_is_an_output_keeps_its_computation() -> None:
    net = Net(x=(1, 3, 5, 4))
    a = net.conv("x", 3, 6, 3, bias=False)
    assert folded(net, net.op("Mul", a, net.normal(6, 1, 1)), a) == {"conv": 1, "mul": 1}


def test_an_inner_value_read_elsewhere_is_not_duplicated() -> None:
    net = Net(x=(1, 3, 5, 4))
    a = net.conv("x", 3, 6, 3, bias=False)
    b = net.op("Mul", net.op("Add", a, net.normal(6, 1, 1)), net.normal(6, 1, 1))
    assert folded(net, b, net.relu(a)) == {"conv": 1, "mul": 1, "add": 1, "relu": 1}


def test_constants_do_not_grow_by_merging() -> None:
    net = Net(x=(1, 64, 5, 4))
    y = net.op("Mul", net.op("Mul", "x", net.normal(64, 1, 1)), net.normal(5, 4))
    assert folded(net, y) == {"mul": 2}


def test_a_computed_weight_is_left_alone() -> None:
    net = Net(x=(1, 3, 5, 4), w=(6, 3, 1, 1))
    y = net.op("Mul", net.op("Conv", "x", "w"), net.normal(6, 1, 1))
    assert folded(net, y) == {"conv": 1, "mul": 1}
