"""Common parts of the transformers: heads, attention, norms and activations as small operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np

from benchmarks.zoo.builder import Builder

__all__ = [
    "attend", "gelu", "gelu_tanh", "layer_norm", "merge_heads", "rms_norm", "self_attention",
    "shape_of", "split_heads",
]  # fmt: skip


def shape_of(net: Builder, x: str, axes: Sequence[int], *rest: int) -> str:
    """The extents of *axes* of *x*, then *rest*, as torch computes the target of a reshape."""
    shape = net.op("Shape", x)
    parts = [
        net.op("Unsqueeze", net.op("Gather", shape, net.constant(axis, np.int64), axis=0),
               net.constant([0], np.int64))
        for axis in axes
    ]  # fmt: skip
    return net.op("Concat", *parts, net.constant(rest, np.int64), axis=0)


def split_heads(net: Builder, x: str, batch: int, length: int, heads: int, size: int) -> str:
    """``[batch, length, heads * size]`` to ``[batch, heads, length, size]``."""
    return net.op("Transpose", net.reshape(x, batch, length, heads, size), perm=[0, 2, 1, 3])


def merge_heads(net: Builder, x: str, batch: int, length: int, width: int) -> str:
    """``[batch, heads, length, size]`` to ``[batch, length, width]``."""
    return net.reshape(net.op("Transpose", x, perm=[0, 2, 1, 3]), batch, length, width)


def attend(net: Builder, q: str, k: str, v: str, size: int, mask: str | None = None) -> str:
    """``softmax(q k' / sqrt(size) + mask) v``, with the head axis before the tokens."""
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.op("Div", scores, net.constant(sqrt(size), name="root"))
    scores = scores if mask is None else net.op("Add", scores, mask)
    return net.op("MatMul", net.op("Softmax", scores, axis=-1), v)


def self_attention(
    net: Builder, x: str, batch: int, length: int, width: int, heads: int
) -> str:  # fmt: skip
    """Attention whose queries, keys and values come from one product, split by head.

    *batch* and *length* are targets of reshapes: 0 keeps the extent, -1 stands for the rest.
    """
    size = width // heads
    all_three = net.reshape(net.linear(x, width, 3 * width), batch, length, 3, heads, size)
    turned = net.op("Transpose", all_three, perm=[2, 0, 3, 1, 4])
    q, k, v = (net.op("Gather", turned, net.constant(i, np.int64), axis=0) for i in range(3))
    mixed = merge_heads(net, attend(net, q, k, v, size), batch, length, width)
    return net.linear(mixed, width, width)


def gelu_tanh(net: Builder, x: str) -> str:
    """``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2`` as exported from GPT-2."""
    cube = net.op("Pow", x, net.constant(3.0, name="three"))
    inner = net.op("Add", x, net.op("Mul", cube, net.constant(0.044715, name="cubic")))
    bent = net.op("Tanh", net.op("Mul", inner, net.constant(sqrt(2 / pi), name="root")))
    half = net.op("Mul", x, net.constant(0.5, name="half"))
    return net.op("Mul", half, net.op("Add", bent, net.constant(1.0, name="one")))


def gelu(net: Builder, x: str) -> str:
    """``x * (1 + erf(x / sqrt(2))) / 2`` as torch exports it."""
    inner = net.op("Erf", net.op("Div", x, net.constant(sqrt(2.0), name="root")))
    gate = net.op("Mul", x, net.op("Add", inner, net.constant(1.0, name="one")))
    return net.op("Mul", gate, net.constant(0.5, name="half"))


def layer_norm(net: Builder, x: str, width: int, *, decomposed: bool = False) -> str:
    """Normalize the last axis: one node, or the small operators of exporters before opset 17."""
    scale, offset = net.scale("norm.scale", width), net.bias("norm.bias", width)
    if not decomposed:
        return net.op("LayerNormalization", x, scale, offset, axis=-1, epsilon=1e-12)
    d = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1]))
    square = net.op("Pow", d, net.constant(2.0, name="two"))
    variance = net.op("ReduceMean", square, axes=[-1])
    shifted = net.op("Add", variance, net.constant(1e-6, name="epsilon"))
    normal = net.op("Div", d, net.op("Sqrt", shifted))
    return net.op("Add", net.op("Mul", normal, scale), offset)


def rms_norm(net: Builder, x: str, width: int) -> str:
    """``x / sqrt(mean(x ** 2) + epsilon) * scale`` as exported from LLaMA."""
    square = net.op("Pow", x, net.constant(2.0, name="two"))
    mean = net.op("ReduceMean", square, axes=[-1])
    root = net.op("Sqrt", net.op("Add", mean, net.constant(1e-6, name="epsilon")))
    normal = net.op("Mul", x, net.op("Reciprocal", root))
    return net.op("Mul", normal, net.scale("norm.scale", width))
