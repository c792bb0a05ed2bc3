"""Products that write their result transposed, and those that do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def checked(net: Net, *outputs: str) -> list[str]:
    network = assert_same_as_onnxruntime(net.model(*outputs), np.random.default_rng(5))
    return [call.name for call in network.calls]


@pytest.mark.parametrize("perm", [[0, 2, 1, 3], [2, 1, 0, 3], [1, 2, 0, 3]])
def test_rows_are_written_where_they_belong(perm: list[int]) -> None:
    net = Net(a=(2, 3, 5, 7), b=(2, 3, 7, 4))
    turned = net.op("Transpose", net.op("MatMul", "a", "b"), perm=perm)
    [name] = checked(net, turned)
    assert name.startswith("matmul_")


def test_leading_axes_are_broadcast() -> None:
    net = Net(a=(3, 5, 7), b=(2, 1, 7, 4))
    turned = net.op("Transpose", net.op("MatMul", "a", "b"), perm=[0, 2, 1, 3])
    assert checked(net, net.reshape(turned, 2, 5, 12)) == ["matmul_2x5x3x4"]


def test_a_last_axis_that_moves_and_a_product_read_twice_stay() -> None:
    net = Net(a=(2, 3, 5, 7), b=(2, 3, 7, 4))
    product = net.op("MatMul", "a", "b")
    moved = net.op("Transpose", product, perm=[0, 1, 3, 2])
    assert len(checked(net, moved)) == 2
    both = net.op("Transpose", product, perm=[0, 2, 1, 3])
    assert len(checked(net, both, product)) == 2


def test_rows_times_a_matrix_stay_one_axis() -> None:
    net = Net(a=(2, 3, 5, 7))
    turned = net.op("Transpose", net.op("MatMul", "a", net.normal(7, 4)), perm=[0, 2, 1, 3])
    assert checked(net, turned) == ["matmul_2x3x5x4", "transpose_2x5x3x4"]
