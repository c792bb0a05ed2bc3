"""Small transformers, whose attentions can be cut in two ways."""

from __future__ import annotations

from onnx import ModelProto

from tests.graph.nets import Net

__all__ = ["TOKENS", "attend", "attend_batch", "transformer"]

TOKENS, WIDTH = 12, 8


def attend(net: Net, x: str, heads: int) -> str:
    """*x* plus self-attention of *heads* heads over it."""
    size = WIDTH // heads

    def head(perm: list[int]) -> str:
        split = net.reshape(net.gemm(x, WIDTH, WIDTH), 1, TOKENS, heads, size)
        return net.op("Transpose", split, perm=perm)

    q, k, v = head([0, 2, 1, 3]), head([0, 2, 3, 1]), head([0, 2, 1, 3])
    scores = net.op("Mul", net.op("MatMul", q, k), net.constant(size**-0.5))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    rows = net.reshape(net.op("Transpose", mixed, perm=[0, 2, 1, 3]), TOKENS, WIDTH)
    return net.op("Add", net.gemm(rows, WIDTH, WIDTH), x)


def transformer(*heads: int) -> ModelProto:
    """A layer with so many heads each, one after another."""
    net = Net(x=(TOKENS, WIDTH))
    value = "x"
    for number in heads:
        value = attend(net, value, number)
    return net.model(value)


def attend_batch(net: Net, x: str, shape: tuple[int, int, int], heads: int) -> str:
    """Self-attention of *heads* heads over *x*, whose shape is batch x tokens x width."""
    batch, tokens, width = shape

    def head(perm: list[int]) -> str:
        product = net.op("MatMul", x, net.normal(width, width))
        split = net.reshape(product, batch, tokens, heads, width // heads)
        return net.op("Transpose", split, perm=perm)

    scores = net.op("MatMul", head([0, 2, 1, 3]), head([0, 2, 3, 1]))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), head([0, 2, 1, 3]))
    return net.reshape(net.op("Transpose", mixed, perm=[0, 2, 1, 3]), *shape)
