"""BERT-base (Devlin et al., 2019) as torch exports it with a dynamic batch and length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.zoo.builder import Builder
from benchmarks.zoo.transformer import attend, gelu, layer_norm, shape_of

__all__ = ["BertSize", "bert", "bert_base"]

LENGTH = 128


@dataclass(frozen=True)
class BertSize:
    """Extents of the network; *places* is the length of the longest text."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    words: int = 30522
    places: int = 512


def bert_base(batch: int, seed: int) -> onnx.ModelProto:
    """Token ids, token types and attention mask, int64 ``[batch, 128]``, to hidden states."""
    net = Builder("bert_base", seed)
    return net.model(**_written(net, batch, LENGTH, BertSize()))


def bert(seed: int, size: BertSize | None = None) -> onnx.ModelProto:
    """The same of any length: inputs ``[1, seq]``."""
    size = size or BertSize()
    net = Builder("bert", seed)
    outputs = _written(net, 1, "seq", size)
    return net.model({"last_hidden_state": (1, "seq", size.width)}, **outputs)


def _written(net: Builder, batch: int, length: int | str, size: BertSize) -> dict[str, str]:
    """Append the network; return its outputs."""
    ids, types, mask = (
        net.input(name, (batch, length), np.int64)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    )
    x = _embedded(net, ids, types, size)
    bias = _mask_bias(net, mask)
    for _ in range(size.layers):
        x = _layer(net, x, bias, size)
    first = net.op("Gather", x, net.constant(0, np.int64), axis=1)
    pooled = net.op("Tanh", net.linear(first, size.width, size.width))
    return {"last_hidden_state": x, "pooler_output": pooled}


def _embedded(net: Builder, ids: str, types: str, size: BertSize) -> str:
    """Sum of word, type and position embeddings; the graph computes the slice of positions."""
    width = size.width
    words = net.op("Gather", net.normal("words", (size.words, width), 1.0), ids, axis=0)
    kinds = net.op("Gather", net.normal("types", (2, width), 0.5), types, axis=0)
    length = net.op("Gather", net.op("Shape", ids), net.constant(1, np.int64), axis=0)
    all_positions = net.constant(np.arange(size.places)[None], np.int64, "positions")
    start, axis = net.constant([0], np.int64), net.constant([1], np.int64)
    end = net.op("Unsqueeze", length, net.constant([0], np.int64))
    chosen = net.op("Slice", all_positions, start, end, axis)
    places = net.op("Gather", net.normal("places", (size.places, width), 0.5), chosen, axis=0)
    return layer_norm(net, net.op("Add", net.op("Add", words, kinds), places), width)


def _mask_bias(net: Builder, mask: str) -> str:
    """0 for real tokens, a large negative number for masked ones: ``[batch, 1, 1, length]``."""
    wide = net.op("Unsqueeze", mask, net.constant([1, 2], np.int64))
    kept = net.op("Cast", wide, to=onnx.TensorProto.FLOAT)
    dropped = net.op("Sub", net.constant(1.0), kept)
    return net.op("Mul", dropped, net.constant(-10000.0))


def _layer(net: Builder, x: str, bias: str, size: BertSize) -> str:
    width = size.width
    q, k, v = (_heads(net, net.linear(x, width, width), x, size) for _ in range(3))
    attended = attend(net, q, k, v, width // size.heads, bias)
    mixed = net.op("Transpose", attended, perm=[0, 2, 1, 3])
    mixed = net.op("Reshape", mixed, shape_of(net, x, (0, 1), width))
    x = layer_norm(net, net.op("Add", net.linear(mixed, width, width), x), width)
    wide = gelu(net, net.linear(x, width, 4 * width))
    return layer_norm(net, net.op("Add", net.linear(wide, 4 * width, width), x), width)


def _heads(net: Builder, x: str, like: str, size: BertSize) -> str:
    shape = shape_of(net, like, (0, 1), size.heads, size.width // size.heads)
    return net.op("Transpose", net.op("Reshape", x, shape), perm=[0, 2, 1, 3])
