"""Stored axis orders: where transposes remain, and that attributes follow."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx import load
from ansorpy.graph.ir import Graph
from ansorpy.graph.op import Concat, Conv, Lrn, Pad, Reduce, Softmax, Transpose
from ansorpy.graph.passes.channels_last import channels_last
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
