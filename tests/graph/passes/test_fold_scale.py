"""Constant scales and shifts disappear into weights, and only where that is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import NodeProto, TensorProto

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize, partition
from ansorpy.graph.ir import Graph
from ansorpy.graph.optimize import simplify
from ansorpy.graph.passes.fold_scale import fold_scale
from tests.frontend.models import graph_model, node
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


def half(nodes: Sequence[NodeProto], held: Mapping[str, Any], x: Any, kind: str) -> Graph:
    """The folded network from ``x`` to ``y`` of a 16-bit type."""
    dtype = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}[kind]
    types = dict.fromkeys(("x", "y"), getattr(TensorProto, kind.upper()))
    constants = {name: np.asarray(value, dtype) for name, value in held.items()}
    return fold_scale(load(graph_model(nodes, {"x": np.shape(x)}, ["y"], constants, types=types)))


@pytest.mark.parametrize(("first", "second", "x", "constants", "want"), [
    ("Mul", "Mul", 0.5, (300, 300), 45000),  # the product of the factors is infinite
    ("Mul", "Mul", 1000, (1e-4, 1e-4), 1e-5),  # and here 0
    ("Mul", "Mul", 80, (1e-3, 2e-3), 1.6e-4),  # or has few digits left
    ("Sub", "Mul", 1000, (1000, 100), 0),  # both terms are infinite
    ("Add", "Add", -6e4, (6e4, 6e4), 6e4),
])  # fmt: skip
def test_constants_of_half_precision_keep_their_range(
    first: str, second: str, x: float, constants: tuple[float, float], want: float
) -> None:
    nodes = [node(first, ["x", "a"], ["t"]), node(second, ["t", "b"], ["y"])]
    graph = half(nodes, dict(zip("ab", constants, strict=True)), [x], "float16")
    [y] = run_network(partition(optimize(graph)), {"x": np.array([x], np.float16)})
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=2e-3)


@pytest.mark.parametrize(("weights", "scale", "left"), [
    ((1, 1, 1), 0.5, {"conv": 1}),
    ((1, 1e-4, 1), 0.5, {"conv": 1}),  # it is too small to matter beside the others
    ((1e-3, 1e-3, 1e-3), 1e-3, {"conv": 1, "mul": 1}),
    ((1, 300, 1), 300, {"conv": 1, "mul": 1}),
])  # fmt: skip
def test_weights_of_half_precision_keep_their_range(
    weights: tuple[float, ...], scale: float, left: dict[str, int]
) -> None:
    weight = np.broadcast_to(np.reshape(weights, (1, 3, 1, 1)), (4, 3, 1, 1))
    nodes = [node("Conv", ["x", "w"], ["t"]), node("Mul", ["t", "s"], ["y"])]
    graph = half(nodes, {"w": weight, "s": scale}, np.ones((1, 3, 5, 4)), "float16")
    assert labels(graph) == left


def test_a_channel_of_small_weights_is_scaled_after_its_sum() -> None:
    weight = np.ones((4, 3, 1, 1))
    weight[2] = 1e-3
    nodes = [node("Conv", ["x", "w"], ["t"]), node("Mul", ["t", "s"], ["y"])]
    graph = half(nodes, {"w": weight, "s": 1e-3}, np.ones((1, 3, 5, 4)), "float16")
    assert labels(graph) == {"conv": 1, "mul": 1}


@pytest.mark.parametrize(("kind", "order"), [
    ("float16", ["conv", "add", "mul"]), ("bfloat16", ["conv", "add"]),
])  # fmt: skip
def test_scales_of_float16_pass_no_shift(kind: str, order: list[str]) -> None:
    nodes = [node("Conv", ["x", "w", "b"], ["t"]), node("Mul", ["t", "s"], ["y"])]
    held = {"w": np.ones((4, 3, 1, 1)), "b": np.ones(4), "s": 2.0}
    graph = half(nodes, held, np.ones((1, 3, 5, 4)), kind)
    assert [n.op.label for n in graph.nodes] == order


def test_channels_without_use_do_not_keep_the_others_from_folding() -> None:
    net = Net(x=(1, 3, 5, 4))
    weight = net.rng.standard_normal((6, 3, 1, 1))
    weight[2] *= 1e-38
    y = net.op("Mul", net.op("Conv", "x", net.constant(weight)), net.constant(0.01))
    assert folded(net, y) == {"conv": 1}


def test_masks_become_one() -> None:
    net = Net(x=(3, 4))
    first, second = np.zeros((3, 4)), np.zeros((3, 4))
    first[0, 1:] = second[0, 2:] = -np.inf
    y = net.op("Add", net.op("Add", "x", net.constant(first)), net.constant(second))
    assert labels(fold_scale(load(net.model(y)))) == {"add": 1}
