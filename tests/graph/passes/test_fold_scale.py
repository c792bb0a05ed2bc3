"""Constant scales and shifts disappear into weights, and only where that is right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.ir import Graph
from ansorpy.graph.optimize import simplify
from ansorpy.graph.passes.fold_scale import fold_scale
from tests.graph.executor import Array, assert_same_as_onnxruntime, run_network
from tests.graph.light_models import light_model
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


def value(net: Net, output: str, x: Array) -> Array:
    """What the network computes once it is optimised."""
    model = net.model(output)
    [result] = run_network(partition(optimize(load(model))), {"x": x})
    return result


def test_what_is_close_to_a_shift_is_shifted_before_it_is_scaled() -> None:
    net = Net(x=(4,))
    y = net.op("Mul", net.op("Sub", "x", net.constant(1000001)), net.constant(999))
    x = np.arange(1000001, 1000005, dtype=np.float32)
    assert value(net, y, x).tolist() == [0, 999, 1998, 2997]


@pytest.mark.parametrize("scale", [1.0, 3.7])
def test_shifts_that_round_stay(scale: float) -> None:
    net = Net(x=(5,))
    scaled = net.op("Mul", "x", net.constant(scale)) if scale != 1 else "x"
    rounded = net.op("Add", scaled, net.constant(12582912))
    rounded = net.op("Sub", rounded, net.constant(12582912))
    y = net.op("Mul", rounded, net.constant(1 / scale))
    x = np.array([-2.7, -0.4, 0.4, 1.6, 9.2], np.float32)
    want = np.round(x * np.float32(scale)) * np.float32(1 / scale)
    np.testing.assert_allclose(value(net, y, x), want, rtol=1e-6)


def test_shifts_of_a_convolution_that_round_stay() -> None:
    net = Net(x=(1, 3, 5, 4))
    y = net.op("Add", net.conv("x", 3, 6), net.constant(12582912))
    y = net.op("Sub", y, net.constant(12582912))
    assert labels(fold_scale(load(net.model(y)))) == {"conv": 1, "add": 2}


def test_shifts_of_like_size_become_one() -> None:
    net = Net(x=(2, 3))
    y = net.op("Add", net.op("Add", "x", net.constant([1, -2, 0])), net.constant([3, 1, 0]))
    assert folded(net, y) == {"add": 1}


def test_shifts_of_a_convolution_become_one_even_if_they_nearly_cancel() -> None:
    net = Net(x=(1, 3, 5, 4))
    y = net.op("Sub", net.op("Add", net.conv("x", 3, 6, bias=False), net.constant(1.0)),
               net.constant(0.999))  # fmt: skip
    assert folded(net, y) == {"conv": 1, "add": 1}


def test_a_scale_passes_a_shift_only_to_reach_a_product() -> None:
    net = Net(x=(1, 3, 5, 4))
    x = net.op("Add", net.conv("x", 3, 6, bias=False), net.normal())
    graph = fold_scale(load(net.model(net.op("Mul", x, net.normal(5, 4)))))
    assert [node.op.label for node in graph.nodes] == ["conv", "add", "mul"]
    net = Net(x=(1, 3, 5, 4))
    x = net.op("Sub", net.op("Mul", "x", net.constant(1 / 255)), net.normal(3, 1, 1))
    assert folded(net, net.op("Mul", x, net.normal(3, 1, 1))) == {"mul": 1, "add": 1}


@pytest.mark.parametrize(("name", "scales", "shifts"), [
    ("densenet121", 63, 122), ("inception_v2", 8, 70), ("resnet50", 1, 70), ("shufflenet", 4, 63),
])  # fmt: skip
def test_batch_norms_of_networks_fold(name: str, scales: int, shifts: int) -> None:
    found = labels(simplify(load(light_model(name, 3))))
    assert (found["mul"], found["add"]) == (scales, shifts)
