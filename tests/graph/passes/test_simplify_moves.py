"""Reshapes and transposes join, cancel, and are recognised as shuffles."""

from __future__ import annotations

import numpy as np
import pytest

from ansorpy.frontend.onnx import load
from ansorpy.graph.ops import Op, Repeat, Reshape, Shuffle, Transpose
from ansorpy.graph.passes.simplify_moves import simplify_moves
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def moves(net: Net, output: str) -> list[Op]:
    model = net.model(output)
    assert_same_as_onnxruntime(model, np.random.default_rng(2))
    return [node.op for node in simplify_moves(load(model)).nodes]


def test_reshapes_join() -> None:
    net = Net(x=(2, 3, 4))
    assert moves(net, net.reshape(net.reshape("x", 6, 4), 3, 8)) == [Reshape((3, 8))]


def test_a_reshape_back_is_nothing() -> None:
    net = Net(x=(2, 3, 4))
    back = net.reshape(net.reshape("x", 6, 4), 2, 3, 4)
    assert [op.label for op in moves(net, net.relu(back))] == ["relu"]


def test_transposes_compose() -> None:
    net = Net(x=(2, 3, 4))
    y = net.op("Transpose", net.op("Transpose", "x", perm=[1, 2, 0]), perm=[0, 2, 1])
    assert moves(net, y) == [Transpose((1, 0, 2))]


def test_inverse_transposes_cancel() -> None:
    net = Net(x=(2, 3, 4))
    y = net.op("Transpose", net.op("Transpose", "x", perm=[1, 2, 0]), perm=[2, 0, 1])
    assert [op.label for op in moves(net, net.relu(y))] == ["relu"]


def test_a_transpose_of_unit_axes_is_a_reshape() -> None:
    net = Net(x=(1, 3, 1, 4))
    y = net.op("Transpose", "x", perm=[1, 0, 3, 2])
    assert moves(net, net.relu(y))[0] == Reshape((3, 1, 4, 1))


def test_a_channel_shuffle_is_recognised() -> None:
    net = Net(x=(2, 6, 3, 4))
    assert moves(net, net.shuffle("x", 6, 3, 4, 2)) == [Shuffle(1, (2, 3), (1, 0))]


def test_a_three_way_shuffle_of_the_last_axis_is_recognised() -> None:
    net = Net(x=(2, 24))
    split = net.reshape("x", 2, 2, 3, 4)
    y = net.reshape(net.op("Transpose", split, perm=[0, 2, 3, 1]), 2, 24)
    assert moves(net, y) == [Shuffle(1, (2, 3, 4), (1, 2, 0))]


def test_depth_to_space_is_not_a_shuffle() -> None:
    net = Net(x=(1, 8, 3, 4))
    split = net.reshape("x", 1, 2, 2, 2, 3, 4)
    y = net.reshape(net.op("Transpose", split, perm=[0, 3, 4, 1, 5, 2]), 1, 2, 6, 8)
    assert [type(op) for op in moves(net, y)] == [Reshape, Transpose, Reshape]


def test_a_move_read_elsewhere_stays_for_that_reader() -> None:
    net = Net(x=(2, 3, 4))
    a = net.op("Transpose", "x", perm=[1, 2, 0])
    b = net.op("Transpose", a, perm=[2, 0, 1])
    model = net.model(net.relu(b), net.relu(a))
    assert_same_as_onnxruntime(model, np.random.default_rng(2))
    labels = [node.op.label for node in simplify_moves(load(model)).nodes]
    assert labels == ["transpose", "relu", "relu"]


def test_a_transpose_between_unit_axes_that_come_and_go_is_one() -> None:
    net = Net(x=(1, 3, 4, 5))
    turned = net.op("Transpose", net.reshape("x", 3, 4, 5), perm=[0, 2, 1])
    assert moves(net, net.reshape(turned, 1, 3, 5, 4)) == [Transpose((0, 1, 3, 2))]
    net = Net(x=(1, 3, 4, 5))
    turned = net.op("Transpose", net.reshape("x", 3, 1, 4, 5), perm=[3, 1, 0, 2])
    assert moves(net, net.reshape(turned, 5, 3, 1, 4)) == [Transpose((3, 1, 0, 2))]


@pytest.mark.parametrize("end", [(2, 6, 4), (2, 2, 3, 4), (12, 4)])
def test_elements_in_a_row_are_a_repetition(end: tuple[int, ...]) -> None:
    net = Net(x=(2, 3, 4))
    split = net.reshape("x", 2, 3, 1, 4)
    wide = net.op("Expand", split, net.constant([2, 3, 2, 4], np.int64))
    again = [] if end == (2, 6, 4) else [Reshape(end)]
    assert moves(net, net.reshape(wide, *end)) == [Repeat((1, 2, 1)), *again]


def test_a_whole_axis_again_is_no_repetition_of_elements() -> None:
    net = Net(x=(2, 3, 4))
    wide = net.op("Expand", net.reshape("x", 2, 1, 3, 4), net.constant([2, 2, 3, 4], np.int64))
    ops = moves(net, net.reshape(wide, 2, 6, 4))
    assert ops != [Repeat((1, 2, 1))] and Repeat((2, 1, 1)) in ops
