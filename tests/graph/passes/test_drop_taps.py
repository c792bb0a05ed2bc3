"""Taps that meet nothing but padding leave their convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansorpy.frontend.onnx import load
from ansorpy.graph import optimize
from ansorpy.graph.ops import Conv
from ansorpy.graph.passes.drop_taps import drop_taps
from tests.budget import examples
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def names(net: Net, y: str) -> list[str]:
    """The calls, compared with onnxruntime first."""
    network = assert_same_as_onnxruntime(net.model(y), np.random.default_rng(3))
    return [call.name for call in network.calls]


def dilated(size: int, dilation: int, k: int = 3, **rest: Any) -> tuple[Net, str]:
    net = Net(x=(1, 4, size, size))
    pads = rest.pop("pads", [dilation * (k // 2)] * 4)
    return net, net.conv("x", 4, 8, k, pads=pads, dilations=[dilation] * 2, **rest)


@pytest.mark.parametrize(
    ("size", "dilation", "kernel"), [(5, 5, "1x1"), (5, 7, "1x1"), (5, 4, "3x3"), (1, 1, "1x1")]
)
def test_far_windows_of_three_become_pixels(size: int, dilation: int, kernel: str) -> None:
    assert f"conv{kernel}" in names(*dilated(size, dilation))[0]


def test_of_five_taps_the_three_that_meet_data_stay() -> None:
    assert "conv3x3" in names(*dilated(7, 4, k=5))[0]


def test_groups_and_depthwise_lose_taps_too() -> None:
    for group in (2, 4):
        assert "conv1x1" in names(*dilated(3, 3, group=group))[0]


def test_a_stride_can_pass_over_the_data_that_a_tap_would_meet() -> None:
    # One output a side, at the corner of the padding: only the last tap is over the image.
    assert "conv1x1" in names(*dilated(2, 3, pads=[6, 6, 0, 0], strides=[4, 4]))[0]


def test_a_graph_without_such_taps_stays_as_it_is() -> None:
    net, y = dilated(8, 2)
    graph = optimize(load(net.model(y)))
    assert all(node.op.channels_last for node in graph.nodes if isinstance(node.op, Conv))
    plain = load(net.model(y))
    assert drop_taps(plain).nodes == plain.nodes


def test_a_weight_that_is_computed_stays() -> None:
    net = Net(x=(1, 4, 3, 3), w=(8, 4, 3, 3))
    y = net.op("Conv", "x", "w", pads=[5] * 4, dilations=[5] * 2)
    graph = load(net.model(y))
    assert drop_taps(graph).nodes == graph.nodes


@examples(60)
@given(
    size=st.integers(1, 9),
    taps=st.integers(1, 4),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 6),
    begin=st.integers(0, 9),
    end=st.integers(0, 9),
)
def test_any_window_gives_what_it_gave(
    size: int, taps: int, stride: int, dilation: int, begin: int, end: int
) -> None:
    if size + begin + end < dilation * (taps - 1) + 1:
        return
    net = Net(x=(1, 2, size))
    weight = net.normal(3, 2, taps)
    y = net.op(
        "Conv", "x", weight, pads=[begin, end], strides=[stride], dilations=[dilation]
    )  # fmt: skip
    assert_same_as_onnxruntime(net.model(y), np.random.default_rng(size))
    for node in drop_taps(load(net.model(y))).nodes:
        if isinstance(node.op, Conv):
            assert min(*node.op.pads_begin, *node.op.pads_end) >= 0
