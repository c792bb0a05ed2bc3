"""Stored axis orders: where transposes remain, and that attributes follow."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph.ir import Graph
from ansorpy.graph.ops import Concat, Conv, Lrn, Pad, Reduce, Softmax, Transpose
from ansorpy.graph.passes.channels_last import channels_last
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def converted(net: Net, *outputs: str) -> Graph:
    return channels_last(load(net.model(*outputs)))


def one(graph: Graph, kind: type) -> object:
    (op,) = (node.op for node in graph.nodes if isinstance(node.op, kind))
    return op


def transposes(graph: Graph) -> list[tuple[int, ...]]:
    return [node.op.perm for node in graph.nodes if isinstance(node.op, Transpose)]


def test_transposes_remain_at_the_borders_only() -> None:
    net = Net(x=(1, 3, 6, 5))
    a = net.relu(net.conv("x", 3, 4, 3))
    b = net.op("MaxPool", net.op("Add", a, net.conv(a, 4, 4)), kernel_shape=[2, 2])
    graph = converted(net, net.op("Tanh", b))
    assert transposes(graph) == [(0, 2, 3, 1), (0, 3, 1, 2)]
    assert graph.types[graph.outputs[0].value].shape == (1, 4, 5, 4)


def test_an_input_read_by_several_convolutions_is_transposed_once() -> None:
    net = Net(x=(1, 3, 6, 5))
    graph = converted(net, net.op("Add", net.conv("x", 3, 4), net.conv("x", 3, 4, 3)))
    assert transposes(graph).count((0, 2, 3, 1)) == 1


def test_axes_of_attributes_follow_the_stored_order() -> None:
    net = Net(x=(1, 3, 6, 5))
    a = net.op("LRN", net.conv("x", 3, 4), size=3)
    b = net.op("Concat", a, a, axis=1)
    c = net.op("Pad", b, net.constant([0, 1, 0, 2, 0, 0, 3, 0], np.int64))
    d = net.op("Softmax", c, axis=2)
    graph = converted(net, net.op("ReduceMax", d, axes=[1], keepdims=0))
    assert one(graph, Concat) == Concat(3)
    assert one(graph, Softmax) == Softmax((1,))
    lrn, pad, reduce = one(graph, Lrn), one(graph, Pad), one(graph, Reduce)
    assert isinstance(lrn, Lrn) and lrn.axis == 3
    assert isinstance(pad, Pad) and (pad.begin, pad.end) == ((0, 0, 2, 1), (0, 3, 0, 0))
    assert isinstance(reduce, Reduce) and reduce.axes == (3,)
    assert transposes(graph) == [(0, 2, 3, 1)], "dropping the channels leaves the model's order"


def test_weights_are_stored_as_the_convolution_reads_them() -> None:
    net = Net(x=(1, 4, 6, 5))
    a = net.conv("x", 4, 6, 3, bias=False)
    b = net.conv(a, 6, 12, 3, group=2, bias=False)
    c = net.conv(b, 12, 12, 3, group=12, bias=False)
    graph = converted(net, c)
    weights = [graph.types[n.inputs[1]].shape for n in graph.nodes if isinstance(n.op, Conv)]
    assert weights == [(3, 3, 4, 6), (3, 3, 2, 3, 6), (3, 3, 12)]


def test_a_network_without_images_is_left_alone() -> None:
    net = Net(x=(3, 4))
    model = net.model(net.op("Softmax", net.gemm("x", 4, 5)))
    before, after = load(model), channels_last(load(model))
    assert after.nodes == before.nodes


def test_pixels_become_rows_where_they_lie() -> None:
    net = Net(x=(1, 3, 6, 5))
    image = net.conv("x", 3, 4, 3)
    rows = net.op("Transpose", net.reshape(image, 1, 4, 30), perm=[0, 2, 1])
    graph = converted(net, net.op("MatMul", rows, net.normal(4, 7)))
    assert transposes(graph) == [(0, 2, 3, 1)], "only that of the network's input"


def halves(extent: int) -> tuple[int, ...]:
    return (2, extent // 2) if extent % 2 == 0 else (extent,)


@pytest.mark.parametrize("seed", range(12))
def test_images_are_reshaped_and_turned_in_any_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = Net(x=(2, 3, 4, 6))
    value, shape = net.relu(net.conv("x", 3, 8, 3)), [2, 8, 4, 6]
    for _ in range(3):
        parts = [
            p for e in shape for p in ((2, e // 2) if rng.random() < 0.4 and e % 2 == 0 else (e,))
        ]
        for place in range(len(parts) - 1, 0, -1):
            if rng.random() < 0.3 or len(parts) > 6:
                parts[place - 1 : place + 1] = [parts[place - 1] * parts[place]]
        perm = [int(p) for p in rng.permutation(len(parts))]
        value = net.op("Transpose", net.reshape(value, *parts), perm=perm)
        shape = [parts[p] for p in perm]
    assert_same_as_onnxruntime(net.model(net.op("Tanh", value)), rng)


def test_rows_are_normalised_as_rows_however_an_image_was_stored() -> None:
    net = Net(x=(1, 3, 4, 6))
    pixels = net.reshape(net.conv("x", 3, 8, 3), 8, 24)
    graph = converted(net, net.op("Softmax", pixels, axis=-1))
    assert one(graph, Softmax) == Softmax((1,))
    other = net.op("Softmax", net.op("Transpose", pixels, perm=[1, 0]), axis=-1)
    assert one(converted(net, other), Softmax) == Softmax((1,))


def test_groups_of_channels_are_normalised_where_they_lie() -> None:
    net = Net(x=(2, 3, 5, 7))
    ones, zeros = net.constant(np.ones(2)), net.constant(np.zeros(2))
    groups = net.reshape(net.conv("x", 3, 8, 3), 2, 2, -1)
    norm = net.reshape(net.op("InstanceNormalization", groups, ones, zeros), 2, 8, 5, 7)
    network = assert_same_as_onnxruntime(
        net.model(net.conv(norm, 8, 4, 1)), np.random.default_rng(4)
    )
    assert [c.name.split("_")[0] for c in network.calls] == [
        "conv3x3", "layernorm", "conv1x1", "transpose"
    ]  # fmt: skip
