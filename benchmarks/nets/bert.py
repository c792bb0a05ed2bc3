"""BERT-base (Devlin et al., 2019) on 128 tokens, as torch exports it with a dynamic batch."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.nets.builder import Builder
from benchmarks.nets.transformer import attend, gelu, layer_norm

__all__ = ["bert_base"]

LENGTH, WIDTH, HEADS, LAYERS, WORDS = 128, 768, 12, 12, 30522


def bert_base(batch: int, seed: int) -> onnx.ModelProto:
    """Token ids, token types and attention mask, int64 ``[batch, 128]``, to hidden states."""
    net = Builder("bert_base", seed)
    ids, types, mask = (
        net.input(name, (batch, LENGTH), np.int64)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    )
    x = _embedded(net, ids, types)
    bias = _mask_bias(net, mask)
    for _ in range(LAYERS):
        x = _layer(net, x, bias)
    first = net.op("Gather", x, net.constant(0, np.int64), axis=1)
    pooled = net.op("Tanh", net.linear(first, WIDTH, WIDTH))
    return net.model(last_hidden_state=x, pooler_output=pooled)


def _embedded(net: Builder, ids: str, types: str) -> str:
    """Sum of word, type and position embeddings; the graph computes the slice of positions."""
    words = net.op("Gather", net.normal("words", (WORDS, WIDTH), 1.0), ids, axis=0)
    kinds = net.op("Gather", net.normal("types", (2, WIDTH), 0.5), types, axis=0)
    length = net.op("Gather", net.op("Shape", ids), net.constant(1, np.int64), axis=0)
    all_positions = net.constant(np.arange(512)[None], np.int64, "positions")
    start, axis = net.constant([0], np.int64), net.constant([1], np.int64)
    end = net.op("Unsqueeze", length, net.constant([0], np.int64))
    chosen = net.op("Slice", all_positions, start, end, axis)
    places = net.op("Gather", net.normal("places", (512, WIDTH), 0.5), chosen, axis=0)
    return layer_norm(net, net.op("Add", net.op("Add", words, kinds), places), WIDTH)


def _mask_bias(net: Builder, mask: str) -> str:
    """0 for real tokens, a large negative number for masked ones: ``[batch, 1, 1, 128]``."""
    wide = net.op("Unsqueeze", mask, net.constant([1, 2], np.int64))
    kept = net.op("Cast", wide, to=onnx.TensorProto.FLOAT)
    dropped = net.op("Sub", net.constant(1.0), kept)
    return net.op("Mul", dropped, net.constant(-10000.0))


def _layer(net: Builder, x: str, bias: str) -> str:
    q, k, v = (_heads(net, net.linear(x, WIDTH, WIDTH), x) for _ in range(3))
    mixed = net.op("Transpose", attend(net, q, k, v, WIDTH // HEADS, bias), perm=[0, 2, 1, 3])
    mixed = net.op("Reshape", mixed, _shape_like(net, x, WIDTH))
    x = layer_norm(net, net.op("Add", net.linear(mixed, WIDTH, WIDTH), x), WIDTH)
    wide = gelu(net, net.linear(x, WIDTH, 4 * WIDTH))
    return layer_norm(net, net.op("Add", net.linear(wide, 4 * WIDTH, WIDTH), x), WIDTH)


def _heads(net: Builder, x: str, like: str) -> str:
    shaped = net.op("Reshape", x, _shape_like(net, like, HEADS, WIDTH // HEADS))
    return net.op("Transpose", shaped, perm=[0, 2, 1, 3])


def _shape_like(net: Builder, x: str, *rest: int) -> str:
    """The shape (batch, length, *rest*), with the first two read from *x*."""
    shape = net.op("Shape", x)
    parts = [
        net.op("Unsqueeze", net.op("Gather", shape, net.constant(d, np.int64), axis=0),
               net.constant([0], np.int64))
        for d in (0, 1)
    ]  # fmt: skip
    return net.op("Concat", *parts, net.constant(rest, np.int64), axis=0)
