"""Attention in the ways exporters write it, and what only looks like it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.executor import assert_same_as_onnxruntime
from tests.graph.nets import Net

TOKENS, HEADS, SIZE = 6, 2, 16


def checked(net: Net, *outputs: str) -> list[str]:
    network = assert_same_as_onnxruntime(net.model(*outputs), np.random.default_rng(5))
    return [call.name for call in network.calls]


def heads(net: Net, x: str, perm: list[int], batch: int = 1) -> str:
    projected = net.op("MatMul", x, net.normal(8, HEADS * SIZE))
    split = net.reshape(projected, batch, TOKENS, HEADS, SIZE)
    return net.op("Transpose", split, perm=perm)


def attention(net: Net, *, mask: str = "", scale: str = "Mul", batch: int = 1) -> str:
    q = heads(net, "x", [0, 2, 1, 3], batch)
    k = heads(net, "x", [0, 2, 3, 1], batch)
    v = heads(net, "x", [0, 2, 1, 3], batch)
    scores = net.op("MatMul", q, k)
    if scale:
        scores = net.op(scale, scores, net.constant(0.25 if scale == "Mul" else 4.0))
    if mask:
        scores = net.op("Add", scores, mask)
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    return net.reshape(net.op("Transpose", mixed, perm=[0, 2, 1, 3]), batch, TOKENS, HEADS * SIZE)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("scale", ["", "Mul", "Div"])
def test_attention_is_one_call_between_its_projections(scale: str, batch: int) -> None:
    net = Net(x=(batch, TOKENS, 8))
    y = net.op("MatMul", attention(net, scale=scale, batch=batch), net.normal(HEADS * SIZE, 8))
    found = checked(net, net.op("Add", y, "x"))
    assert [title.split("_")[:-1] for title in found] == [
        ["matmul"],
        ["transpose", "transpose", "transpose", "attention"],
        ["matmul", "add"],
    ]


@pytest.mark.parametrize("shape", [(TOKENS, TOKENS), (2, 1, 1, TOKENS), (1, HEADS, 1, 1), (1,)])
def test_a_mask_is_part_of_it(shape: tuple[int, ...]) -> None:
    net = Net(x=(2, TOKENS, 8), m=shape)
    found = checked(net, net.op("Tanh", attention(net, mask="m", batch=2)))
    assert "attention" in found[-2] and len(found) == 3


def test_so_are_several_masks() -> None:
    net = Net(x=(2, TOKENS, 8), m=(2, 1, 1, TOKENS))
    q, k, v = (heads(net, "x", perm, 2) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = net.op("Mul", net.op("MatMul", q, k), net.constant(0.5))
    scores = net.op("Add", scores, net.normal(HEADS, TOKENS, TOKENS))
    scores = net.op("Add", "m", scores)
    found = checked(net, net.op("MatMul", net.op("Softmax", scores, axis=-1), v))
    assert len(found) == 2 and "attention" in found[1]


def test_a_constant_mask_is_part_of_it() -> None:
    net = Net(x=(1, TOKENS, 8))
    mask = net.constant(np.triu(np.full((TOKENS, TOKENS), -1e4), 1))
    assert "attention" in checked(net, net.op("Tanh", attention(net, mask=mask)))[-2]


def test_scores_that_are_read_elsewhere_are_not_taken() -> None:
    net = Net(q=(2, 5, 4), k=(2, 4, 5), v=(2, 5, 4))
    weights = net.op("Softmax", net.op("MatMul", "q", "k"), axis=-1)
    found = checked(net, net.op("MatMul", weights, "v"), net.op("Neg", weights))
    assert not any("attention" in title for title in found)


def test_a_softmax_along_another_axis_is_not_taken() -> None:
    net = Net(q=(2, 5, 4), k=(2, 4, 5), v=(2, 5, 4))
    weights = net.op("Softmax", net.op("MatMul", "q", "k"), axis=1)
    found = checked(net, net.op("MatMul", weights, "v"))
    assert not any("attention" in title for title in found)


def test_a_mask_that_broadcasts_the_scores_is_not_taken() -> None:
    net = Net(q=(5, 4), k=(4, 5), v=(5, 4), m=(2, 5, 5))
    scores = net.op("Add", net.op("MatMul", "q", "k"), "m")
    found = checked(net, net.op("MatMul", net.op("Softmax", scores, axis=-1), "v"))
    assert not any("attention" in title for title in found)


@pytest.mark.parametrize(("count", "kinds"), [(2, "asm"), (3, "asa"), (4, "asasm")])
def test_of_attentions_that_share_a_product_every_other_one_is_taken(
    count: int, kinds: str
) -> None:
    net = Net(x=(4, 8))
    value = net.op("MatMul", "x", net.normal(8, 8))
    for _ in range(count):
        value = net.op("MatMul", net.op("Softmax", value, axis=-1), net.normal(8, 8))
    assert "".join(title[0] for title in checked(net, value)) == kinds
