"""Products of one operand that become one, and those that stay apart."""

from __future__ import annotations

import numpy as np

from ansorpy.graph import Network
from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def checked(net: Net, *outputs: str) -> list[str]:
    network: Network = assert_same_as_onnxruntime(net.model(*outputs), np.random.default_rng(5))
    return [call.name for call in network.calls]


def total(net: Net, *values: str) -> str:
    pooled = [net.op("GlobalMaxPool", value) for value in values]
    return net.op("ReduceMax", net.op("Concat", *pooled, axis=1), axes=[1])


def mixed(net: Net, q: str, k: str, v: str) -> str:
    return net.op("MatMul", net.op("MatMul", q, net.op("Transpose", k, perm=[1, 0])), v)


def test_projections_of_one_value_are_one_product() -> None:
    net = Net(x=(6, 8))
    q, k, v = (
        net.op("Add", net.op("MatMul", "x", net.normal(8, 16)), net.normal(16)) for _ in range(3)
    )
    assert checked(net, mixed(net, q, k, v)) == [
        "matmul_add_6x48",
        "transpose_matmul_6x6",
        "matmul_6x16",
    ]


def test_branches_of_one_image_are_one_convolution_and_the_odd_one_comes_last() -> None:
    net = Net(x=(1, 8, 5, 4))
    x = net.relu(net.conv("x", 8, 16))
    a, b, c = (net.relu(net.conv(x, 16, co)) for co in (5, 16, 32))
    found = checked(net, total(net, *(net.conv(y, w, 4, 3) for y, w in ((a, 5), (b, 16), (c, 32)))))
    assert "conv1x1_add_relu_5x4x53" in found and not any("slice" in title for title in found)


def test_a_branch_that_is_concatenated_is_written_there() -> None:
    net = Net(x=(1, 8, 5, 4))
    x = net.relu(net.conv("x", 8, 16))
    a, b, c = (net.relu(net.conv(x, 16, co)) for co in (16, 16, 32))
    y = net.op("Concat", a, net.conv(b, 16, 16, 3), net.conv(c, 32, 16, 3), axis=1)
    found = checked(net, net.op("GlobalMaxPool", y))
    assert {t for t in found if "conv1x1" in t and "from_nchw" not in t} == {
        "conv1x1_add_relu_5x4x48", "conv1x1_add_relu_5x4x16",
    }  # fmt: skip


def test_what_has_other_arithmetic_behind_it_stays_alone() -> None:
    net = Net(x=(1, 8, 5, 4))
    x = net.relu(net.conv("x", 8, 16))
    a, b = net.relu(net.conv(x, 16, 16)), net.op("Tanh", net.conv(x, 16, 16))
    c = net.op("Add", net.conv(x, 16, 16), x)
    found = checked(net, total(net, *(net.conv(y, 16, 4, 3) for y in (a, b, c))))
    assert sum("conv1x1" in title for title in found) == 4


def test_outputs_of_the_network_stay_alone() -> None:
    net = Net(x=(6, 8))
    found = checked(net, *(net.op("MatMul", "x", net.normal(8, 16)) for _ in range(2)))
    assert found == ["matmul_6x16", "matmul_6x16"]


def test_scalars_and_rows_behind_the_products_are_put_side_by_side() -> None:
    net = Net(x=(6, 8))
    one, other = (
        net.op("Add", net.op("MatMul", "x", net.normal(8, 16)), net.constant(c)) for c in (1.5, 2.5)
    )
    rows = net.op("Add", net.op("MatMul", "x", net.normal(8, 16)), net.normal(16))
    found = checked(net, mixed(net, one, other, rows))
    assert found == ["matmul_add_6x48", "transpose_matmul_6x6", "matmul_6x16"]


def test_a_sibling_that_is_seen_flat_stays_alone() -> None:
    net = Net(x=(6, 8))
    a, b = (net.op("MatMul", "x", net.normal(8, 16)) for _ in range(2))
    y = net.op("MatMul", net.reshape(a, 1, 96), net.normal(96, 3))
    found = checked(net, net.op("Add", y, net.op("ReduceMax", b)))
    assert found[:2] == ["matmul_6x16", "matmul_6x16"]
