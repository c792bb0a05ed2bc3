"""Concatenations and slices that copy nothing, and those that have to."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph import Network, optimize, partition
from tests.frontend.models import graph_model, node
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def checked(net: Net, *outputs: str) -> Network:
    return assert_same_as_onnxruntime(net.model(*outputs), np.random.default_rng(7))


def titles(network: Network) -> list[str]:
    return [call.name for call in network.calls]


def cut(net: Net, x: str, start: int, stop: int, axis: int = 1) -> str:
    return net.op("Slice", x, *(net.constant([v], np.int64) for v in (start, stop, axis)))


def test_branches_write_into_the_concatenation() -> None:
    net = Net(x=(1, 8, 5, 7))
    x = net.relu(net.conv("x", 8, 16))
    parts = [net.relu(net.conv(x, 16, co, k)) for co, k in ((32, 1), (16, 3))]
    y = net.conv(net.op("Concat", *parts, axis=1), 48, 8, 3)
    network = checked(net, net.op("GlobalMaxPool", y))
    assert titles(network) == [
        "conv1x1_add_relu_from_nchw_5x7x16", "conv1x1_add_relu_5x7x32",
        "conv3x3_add_relu_5x7x16", "conv3x3_add_5x7x8", "reduce_max_1x1x8",
    ]  # fmt: skip
    first, second = (call.dag for call in network.calls[1:3])
    assert first.strides == {first.outputs[0].name: (48, 1)}
    assert second.strides == {second.outputs[0].name: (1680, 336, 48, 1)}
    assert [view.offset_bytes for view in network.subviews.values()] == [0, 128]


def test_operands_of_odd_channels_are_copied() -> None:
    net = Net(x=(1, 8, 5, 7))
    parts = [net.conv("x", 8, co, 3) for co in (24, 16)]
    network = checked(net, net.op("GlobalMaxPool", net.op("Concat", *parts, axis=1)))
    assert any("concat" in title for title in titles(network))
    assert not network.subviews


def test_a_diagonal_of_any_size_is_no_view() -> None:
    """Its elements are as far apart as the size says."""
    nodes = [node("Einsum", ["x"], ["d"], equation="ii->i"), node("Relu", ["d"], ["y"])]
    model = graph_model(nodes, {"x": ("n", "n")}, ["y"])
    network = partition(optimize(load(model, dims={"n": (1, 40)})))
    assert len(network.calls) == 1 and not network.subviews


def test_growing_concatenations_are_one_buffer() -> None:
    net = Net(x=(1, 8, 5, 4))
    x, channels = net.relu(net.conv("x", 8, 32, 3)), 32
    for _ in range(3):
        y = net.conv(net.relu(net.batch_norm(x, channels)), channels, 16, 3)
        x, channels = net.op("Concat", x, y, axis=1), channels + 16
    network = checked(net, net.op("GlobalMaxPool", x))
    assert not any("concat" in title for title in titles(network))
    assert len({view.of for view in network.subviews.values()}) == 1
    assert len(network.workloads()) == len(network.calls)


def test_an_operand_of_two_concatenations_is_copied_into_one() -> None:
    net = Net(x=(1, 8, 5, 4))
    a, b, c = (net.relu(net.conv("x", 8, 16, 3)) for _ in range(3))
    y, z = net.op("Concat", a, b, axis=1), net.op("Concat", a, c, axis=1)
    network = checked(net, net.op("GlobalMaxPool", y), net.op("GlobalMaxPool", z))
    assert sum("concat" in title for title in titles(network)) == 1


def test_what_the_caller_gives_is_copied() -> None:
    net = Net(x=(1, 5, 4, 16), z=(1, 5, 4, 16))
    y = net.op("Concat", "x", net.relu("z"), axis=3)
    found = titles(checked(net, net.op("ReduceMax", y, axes=[3])))
    assert found == ["relu_concat_5x4x32", "reduce_max_5x4x1"]


def test_the_callers_buffer_is_written_in_parts() -> None:
    net = Net(x=(3, 16), z=(3, 32))
    y = net.op("Concat", net.relu("x"), net.op("Tanh", "z"), axis=1)
    network = checked(net, y)
    assert titles(network) == ["relu_3x16", "tanh_3x32"]
    assert {view.of for view in network.subviews.values()} == {network.outputs[0].name}
    assert network.arena.bytes == 0


def test_a_part_that_is_an_output_too_is_copied_there() -> None:
    net = Net(x=(3, 16), z=(3, 32))
    a = net.relu("x")
    y = net.op("Concat", a, net.op("Tanh", "z"), axis=1)
    network = checked(net, a, net.op("ReduceMax", y, axes=[1]))
    assert titles(network) == ["relu_3x16", "tanh_3x32", "reduce_max_3x1", f"copy_{a}"]


def test_a_slice_of_channels_is_read_where_it_is() -> None:
    net = Net(x=(1, 8, 5, 4))
    x = net.relu(net.conv("x", 8, 48))
    left, right = net.conv(cut(net, x, 0, 16), 16, 8), net.conv(cut(net, x, 16, 48), 32, 8, 3)
    network = checked(net, net.op("GlobalMaxPool", net.op("Add", left, right)))
    assert not any("slice" in title for title in titles(network))
    assert sorted(view.offset_bytes for view in network.subviews.values()) == [0, 64]


@pytest.mark.parametrize("step", [1, 2])
def test_a_slice_of_rows_is_read_where_it_is(step: int) -> None:
    net = Net(x=(1, 8, 9, 4))
    x = net.relu(net.conv("x", 8, 16))
    args = (net.constant([v], np.int64) for v in (2, 8, 2, step))
    rows = net.op("Slice", x, *args)
    y = net.op("Add", net.relu(net.conv(rows, 16, 8)), net.conv(rows, 16, 8, 3))
    network = checked(net, net.op("GlobalMaxPool", y))
    assert not any("slice" in title for title in titles(network))


def test_a_split_into_equal_parts_copies_nothing() -> None:
    net = Net(x=(6, 8))
    qkv = net.op("MatMul", "x", net.normal(8, 48))
    parts = [cut(net, qkv, n, n + 16) for n in (0, 16, 32)]
    total = net.op("Add", net.op("Mul", parts[0], parts[1]), net.op("Tanh", parts[2]))
    assert titles(checked(net, total)) == ["matmul_6x48", "mul_tanh_add_6x16"]


def test_a_part_that_is_seen_flat_elsewhere_is_no_part() -> None:
    net = Net(x=(1, 8, 5, 4))
    a, b = (net.relu(net.conv("x", 8, 16, 3)) for _ in range(2))
    y = net.op("Concat", a, b, axis=1)
    z = net.gemm(net.op("Flatten", a), 16 * 20, 3)
    network = checked(net, net.op("GlobalMaxPool", y), z)
    assert any("concat" in title for title in titles(network))


def test_a_slice_of_what_the_caller_gives_as_an_output_is_copied() -> None:
    net = Net(x=(3, 32))
    network = checked(net, cut(net, "x", 16, 32))
    assert len(network.calls) == 1


def test_arithmetic_of_any_length_stands_before_a_concatenation() -> None:
    net = Net(x=(2, 5, 7), y=(2, 7, 5))
    value = turned = net.op("Transpose", "x", perm=[0, 2, 1])
    for _ in range(1200):
        value = net.op("Tanh", value)
    checked(net, net.op("Concat", value, turned, "y", axis=1))


def test_a_slice_up_to_a_size_that_nothing_relates_to_the_axis_is_copied() -> None:
    """``4 * ((t + 12) // 16) <= t // 4 + 3`` holds, but no bound of the difference shows it."""
    rng = np.random.default_rng(3)
    kernels = {"w": (4, 2, 8), "v": (4, 4, 8), "u": (4, 4, 8), "k": (3, 4, 3)}
    held = {name: rng.standard_normal(s).astype(np.float32) for name, s in kernels.items()}
    ends = {"zero": np.asarray([0]), "two": np.asarray([2])}
    nodes = [
        node("Conv", ["x", "w"], ["a"], strides=[4]), node("Relu", ["a"], ["skip"]),
        node("Conv", ["skip", "v"], ["b"], strides=[4]),
        node("ConvTranspose", ["b", "u"], ["up"], strides=[4]),
        node("Shape", ["up"], ["n"], start=2),
        node("Slice", ["skip", "zero", "n", "two"], ["part"]), node("Conv", ["part", "k"], ["c"]),
        node("Conv", ["skip", "k"], ["d"]), node("GlobalAveragePool", ["d"], ["e"]),
        node("Add", ["c", "e"], ["y"]),
    ]  # fmt: skip
    model = graph_model(nodes, {"x": (2, 2, "t")}, ["y"], held | ends)
    whole = partition(optimize(load(model, dims={"t": (60, 200)})))
    assert any("slice" in title for title in titles(whole))
    network = partition(optimize(load(model, dims={"t": 61})))
    assert_same_as_onnxruntime(model, rng, network)
