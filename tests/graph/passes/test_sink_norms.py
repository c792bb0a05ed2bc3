"""Rows change places before they are normalised."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net


def windows(net: Net, x: str, size: int = 3) -> str:
    """Squares of *size* by *size* pixels of a channels-last image one after another."""
    split = net.reshape(x, 1, 6 // size, size, 6 // size, size, 8)
    turned = net.op("Transpose", split, perm=[0, 1, 3, 2, 4, 5])
    return net.reshape(turned, 36 // size**2, size**2, 8)


def norm(net: Net, x: str, *scale: int) -> str:
    one = net.constant(np.ones(8))
    return net.op("Mul", net.op("LayerNormalization", x, one), net.normal(*scale))


def calls(net: Net, *outputs: str) -> list[str]:
    network = assert_same_as_onnxruntime(net.model(*outputs), np.random.default_rng(6))
    return [call.name for call in network.calls]


@pytest.mark.parametrize("scale", [(), (8,), (1, 1, 8)])
def test_windows_are_read_by_the_norm(scale: tuple[int, ...]) -> None:
    net = Net(x=(1, 6, 6, 8))
    product = net.op("MatMul", windows(net, norm(net, "x", *scale)), net.normal(8, 16))
    names = calls(net, product)
    assert len(names) == 2 and names[0].startswith("transpose_layernorm")


def test_rows_of_their_own_scale_stay() -> None:
    net = Net(x=(1, 6, 6, 8))
    names = calls(net, windows(net, norm(net, "x", 6, 6, 1)))
    assert names[0].startswith("layernorm") and names[1].startswith("transpose")


def test_what_others_read_stays() -> None:
    net = Net(x=(1, 6, 6, 8))
    rows = norm(net, "x", 8)
    names = calls(net, windows(net, rows), rows)
    assert names[0].startswith("layernorm") and names[1].startswith("transpose")


def test_columns_stay() -> None:
    net = Net(x=(1, 6, 6, 8))
    names = calls(net, net.op("Transpose", norm(net, "x", 8), perm=[0, 3, 1, 2]))
    assert names[0].startswith("layernorm")


def test_norms_whose_result_arithmetic_widens_stay() -> None:
    net = Net(x=(2, 3, 1))
    rows = net.op("LayerNormalization", "x", net.constant(np.ones(1)))
    wide = net.reshape(net.op("Mul", rows, net.normal(8)), 1, 2, 3, 8)
    names = calls(net, net.op("Transpose", wide, perm=[0, 2, 1, 3]))
    assert names[0].startswith("layernorm")
