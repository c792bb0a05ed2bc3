"""A decoder with the structure of GPT-2 (Radford et al., 2019): one token after any number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.zoo.builder import Builder
from benchmarks.zoo.transformer import attend, gelu_tanh, layer_norm, shape_of

__all__ = ["DecoderSize", "decoder"]


@dataclass(frozen=True)
class DecoderSize:
    """Extents of the network; *places* is the length of the longest text.

    With *tokens_first*, caches are ``[1, past, heads, each]``, so that one more row does not move
    those before it.
    """

    layers: int = 6
    width: int = 512
    heads: int = 8
    words: int = 8000
    places: int = 2048
    tokens_first: bool = False

    @property
    def each(self) -> int:
        return self.width // self.heads

    def cache(self, rows: str) -> tuple[int | str, ...]:
        """The shape of a cache of so many *rows*."""
        middle = (rows, self.heads) if self.tokens_first else (self.heads, rows)
        return 1, *middle, self.each


def decoder(seed: int, size: DecoderSize | None = None) -> onnx.ModelProto:
    """A token id, int64 ``[1, 1]``, and keys and values of those before it to scores.

    The caches are inputs ``past_key_N``, ``past_value_N``, ``[1, heads, past, each]``, and outputs
    ``present_key_N``, ``present_value_N`` with one row more.
    """
    size = size or DecoderSize()
    net = Builder("decoder", seed)
    ids = net.input("ids", (1, 1), np.int64)
    pasts = [
        tuple(net.input(f"past_{kind}_{layer}", size.cache("past")) for kind in KINDS)
        for layer in range(size.layers)
    ]
    position, mask = _positions(net, ids, pasts[0][0], size)
    words = net.op("Gather", net.normal("words", (size.words, size.width), 1.0), ids, axis=0)
    places = net.normal("places", (size.places, size.width), 0.5)
    x = net.op("Add", words, net.op("Gather", places, position, axis=0))
    outputs: dict[str, str] = {}
    for layer, past in enumerate(pasts):
        y, caches = _attention(net, layer_norm(net, x, size.width), past, mask, size)
        outputs |= {f"present_{kind}_{layer}": c for kind, c in zip(KINDS, caches, strict=True)}
        x = net.op("Add", x, y)
        wide = net.linear(layer_norm(net, x, size.width), size.width, 4 * size.width)
        x = net.op("Add", x, net.linear(gelu_tanh(net, wide), 4 * size.width, size.width))
    head = net.normal("head", (size.width, size.words), size.width**-0.5)
    logits = net.op("MatMul", layer_norm(net, x, size.width), head)
    shapes = dict.fromkeys(outputs, size.cache("past + 1"))
    return net.model({"logits": (1, 1, size.words), **shapes}, logits=logits, **outputs)


KINDS = ("key", "value")


def _positions(net: Builder, ids: str, past: str, size: DecoderSize) -> tuple[str, str]:
    """The token's position ``[1, 1]``, and the mask of later ones ``[1, 1, 1, past + 1]``.

    Both are computed from the shapes of *ids* and *past*, as transformers does since 4.38.
    """

    def extent(x: str, axis: int) -> str:
        return net.op("Gather", net.op("Shape", x), net.constant(axis, np.int64), axis=0)

    zero, one = net.constant(0, np.int64, "zero"), net.constant(1, np.int64, "one")
    seen = extent(past, size.cache("past").index("past"))
    total = net.op("Add", seen, extent(ids, 1))
    places = net.op("Range", seen, total, one)
    position = net.op("Unsqueeze", places, net.constant([0], np.int64))
    columns = net.op("Unsqueeze", net.op("Range", zero, total, one), net.constant([0], np.int64))
    later = net.op("Greater", columns, net.op("Unsqueeze", places, net.constant([1], np.int64)))
    lowest = net.constant(np.finfo(np.float32).min, name="lowest")
    mask = net.op("Mul", net.op("Cast", later, to=onnx.TensorProto.FLOAT), lowest)
    return position, net.op("Unsqueeze", mask, net.constant([0, 1], np.int64))


def _attention(
    net: Builder, x: str, past: tuple[str, ...], mask: str, size: DecoderSize
) -> tuple[str, tuple[str, str]]:
    """The attention output, and the caches with one more row."""
    all_three = net.linear(x, size.width, 3 * size.width)
    parts = net.constant([size.width] * 3, np.int64)
    q, k, v = (_heads(net, y, size) for y in net.ops("Split", 3, all_three, parts, axis=-1))
    axis = size.cache("past").index("past")
    keys, values = (
        net.op("Concat", old, new, axis=axis) for old, new in zip(past, (k, v), strict=True)
    )
    q, k, v = (_heads_first(net, y, size) for y in (q, keys, values))
    mixed = net.op("Transpose", attend(net, q, k, v, size.each, mask), perm=[0, 2, 1, 3])
    mixed = net.op("Reshape", mixed, shape_of(net, mixed, (0, 1), size.width))
    return net.linear(mixed, size.width, size.width), (keys, values)


def _heads(net: Builder, x: str, size: DecoderSize) -> str:
    """The rows of *x* as those of a cache."""
    split = net.op("Reshape", x, shape_of(net, x, (0, 1), size.heads, size.each))
    return split if size.tokens_first else net.op("Transpose", split, perm=[0, 2, 1, 3])


def _heads_first(net: Builder, x: str, size: DecoderSize) -> str:
    return net.op("Transpose", x, perm=[0, 2, 1, 3]) if size.tokens_first else x
