"""One step of a small language model: one token after 127 others, with their key-value cache."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.builder import Builder
from benchmarks.zoo.transformer import attend, merge_heads, rms_norm, split_heads

__all__ = ["decoder_step"]

PAST, WIDTH, HEADS, LAYERS, WORDS, INNER = 127, 512, 8, 6, 8000, 1376


def decoder_step(batch: int, seed: int) -> onnx.ModelProto:
    """Token and position ids, int64 ``[batch, 1]``, and caches to scores and extended caches."""
    net = Builder("decoder_step", seed)
    token, place = (net.input(name, (batch, 1), np.int64) for name in ("token", "position"))
    table = net.normal("words", (WORDS, WIDTH), 1.0)
    places = net.normal("places", (PAST + 1, WIDTH), 0.5)
    x = net.op(
        "Add", net.op("Gather", table, token, axis=0), net.op("Gather", places, place, axis=0)
    )
    outputs: dict[str, str] = {}
    for layer in range(LAYERS):
        y, caches = _attention(net, rms_norm(net, x, WIDTH), batch, layer)
        outputs.update(caches)
        x = net.op("Add", x, y)
        x = net.op("Add", x, _gated(net, rms_norm(net, x, WIDTH)))
    head = net.normal("head", (WIDTH, WORDS), WIDTH**-0.5)
    scores = net.op("MatMul", rms_norm(net, x, WIDTH), head)
    return net.model(scores=scores, **outputs)


def _attention(net: Builder, x: str, batch: int, layer: int) -> tuple[str, dict[str, str]]:
    """The attention output, and this layer's caches with one more row."""
    size = WIDTH // HEADS
    q, k, v = (
        split_heads(net, net.linear(x, WIDTH, WIDTH, bias=False), batch, 1, HEADS, size)
        for _ in range(3)
    )
    shape = (batch, HEADS, PAST, size)
    keys = net.op("Concat", net.input(f"past_keys.{layer}", shape), k, axis=2)
    values = net.op("Concat", net.input(f"past_values.{layer}", shape), v, axis=2)
    mixed = merge_heads(net, attend(net, q, keys, values, size), batch, 1, WIDTH)
    caches = {f"keys.{layer}": keys, f"values.{layer}": values}
    return net.linear(mixed, WIDTH, WIDTH, bias=False), caches


def _gated(net: Builder, x: str) -> str:
    """``silu(x a) * (x b)``, projected back to the width."""
    a, b = (net.linear(x, WIDTH, INNER, bias=False) for _ in range(2))
    inner = net.op("Mul", net.op("Mul", a, net.op("Sigmoid", a)), b)
    return net.linear(inner, INNER, WIDTH, bias=False)
