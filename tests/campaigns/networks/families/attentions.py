"""Attention with all its attributes, and other operators on sequences of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.campaigns.networks.growing import Growing
from tests.campaigns.networks.values import Value

__all__ = ["ATTENTIONS"]


def caches(net: Growing) -> None:
    """Queries that also attend to cached keys, which come out with the new ones behind."""
    if net.opset < 23:  # which has no Attention
        return
    batch, few, each = net.count(1, 2), net.count(1, 2), net.count(1, 3)
    n, past, d, e = net.count(1, 5), net.count(1, 6), net.count(1, 7), net.count(1, 5)
    q = net.new_input([batch, few * each, n, d])
    k, v = net.new_input([batch, few, n, d]), net.new_input([batch, few, n, e])
    mask = _mask(net, n, past + n)
    pasts = net.new_input([batch, few, past, d]), net.new_input([batch, few, past, e])
    net.several("Attention", q, k, v, mask, *pasts, outputs=3, **_attributes(net, mask))


def rows_of_heads(net: Growing) -> None:
    """Heads side by side in each row."""
    if net.opset < 23:
        return
    batch, few, each = net.count(1, 2), net.count(1, 2), net.count(1, 3)
    n, m, d, e = net.count(1, 5), net.count(1, 7), net.count(1, 6), net.count(1, 5)
    q = net.new_input([batch, n, few * each * d])
    k, v = net.new_input([batch, m, few * d]), net.new_input([batch, m, few * e])
    mask = _mask(net, n, m)
    net.add(
        "Attention", q, k, v, mask, q_num_heads=few * each, kv_num_heads=few,
        **_attributes(net, mask),
    )  # fmt: skip


def scores(net: Growing) -> None:
    """The scores come out, too: plain, capped, masked or as probabilities."""
    if net.opset < 23:
        return
    batch, heads, n, m, d = (net.count(1, k) for k in (2, 3, 5, 7, 6))
    q, k, v = (net.new_input([batch, heads, rows, d]) for rows in (n, m, m))
    mask = _mask(net, n, m) if net.chance() else None
    given = {"qk_matmul_output_mode": net.count(0, 3), **_attributes(net, mask)}
    if given["qk_matmul_output_mode"] == 0:  # onnx's reference (1.23) gives the capped ones
        given.pop("softcap", None)
    made = net.node("Attention", [q, k, v, mask], 4, **given)
    made.output[1], made.output[2] = "", ""
    net.chain([made], [q, k, v, mask])


def lengths(net: Growing) -> None:
    """Caches of which each text fills a part."""
    if net.opset < 24:
        return
    batch, heads, n, d = (net.count(1, k) for k in (3, 3, 4, 6))
    room = n + net.count(0, 5)
    q = net.new_input([batch, heads, n, d])
    k, v = (net.new_input([batch, heads, room, d]) for _ in range(2))
    filled = net.given(net.rng.integers(n, room + 1, batch))
    net.add("Attention", q, k, v, None, None, None, filled, is_causal=net.count(0, 1))


def turned(net: Growing) -> None:
    """Rotary embeddings of a part of each head, in both orders, with a table for each place."""
    if net.opset < 23:
        return
    batch, heads, n, half = (net.count(1, k) for k in (2, 3, 5, 4))
    part = 2 * net.count(1, half)
    given: dict[str, Any] = {"interleaved": net.count(0, 1)}
    if part < 2 * half or net.chance():
        given["rotary_embedding_dim"] = part
    else:
        part = 2 * half
    angles = net.uniform(-3.0, 3.0, batch, n, part // 2)
    tables = [net.constant(np.cos(angles)), net.constant(np.sin(angles))]
    if net.chance():
        x = net.new_input([batch, heads, n, 2 * half])
    else:
        x, given["num_heads"] = net.new_input([batch, n, heads * 2 * half]), heads
    net.add("RotaryEmbedding", x, *tables, **given)


def linear(net: Growing) -> None:
    """Attention without a softmax, whose state grows by each row."""
    if net.opset < 27:
        return
    batch, few, each, n = (net.count(1, k) for k in (2, 2, 2, 5))
    d, e = net.count(1, 5), net.count(1, 5)
    rule = net.one_of(["linear", "gated", "delta", "gated_delta"])
    q = net.new_input([batch, n, few * each * d])
    k, v = net.new_input([batch, n, few * d]), net.new_input([batch, n, few * e])
    decay = net.given(-net.uniform(0.1, 1.0, batch, n, few * d).astype(net.floats))
    rate = net.given(net.uniform(0.2, 0.8, batch, n, few).astype(net.floats))
    net.several(
        "LinearAttention", q, k, v, None, decay if "gated" in rule else None,
        rate if "delta" in rule else None, outputs=2, update_rule=rule,
        q_num_heads=few * each, kv_num_heads=few,
    )  # fmt: skip


def causal_conv(net: Growing) -> None:
    """A depthwise convolution of rows before each one, which hands its last rows on."""
    if net.opset < 27:
        return
    batch, channels, n = (net.count(1, k) for k in (2, 5, 7))
    taps = net.count(2, 5)
    x = net.new_input([batch, channels, n])
    w = net.constant(net.normal(channels, 1, taps))
    bias = net.constant(net.normal(channels)) if net.chance() else None
    past = net.new_input([batch, channels, taps - 1]) if net.chance() else None
    how = net.one_of(["none", "silu", "swish"])
    net.several("CausalConvWithState", x, w, bias, past, outputs=2, activation=how)


def flexible(net: Growing) -> None:
    """Attention whose scores a body may change."""
    if net.opset < 24:
        return
    batch, heads, n, m, d = (net.count(1, k) for k in (2, 3, 5, 7, 6))
    q, k, v = (net.new_input([batch, heads, rows, d]) for rows in (n, m, m))
    net.add("ai.onnx.preview.FlexAttention", q, k, v)


def gated(net: Growing) -> None:
    """Halves of which one decides how much of the other remains."""
    if net.opset < 28:
        return
    x = net.pick()
    net.add("SwiGLU", x, net.like(x, net.normal(*x.shape)), alpha=net.one_of([0.5, 1.0, 2.0]))


def _mask(net: Growing, rows: int, columns: int) -> Value:
    """What is added to scores, or which of them count: the first one always does."""
    if net.chance():
        return net.constant(net.normal(rows, columns))
    flags = net.rng.random((rows, columns)) < 0.7
    flags[:, 0] = True
    return net.given(flags)


def _attributes(net: Growing, mask: Value | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if net.chance(0.3):
        given["softcap"] = float(net.uniform(1.0, 5.0))
    if net.chance(0.3):
        given["scale"] = float(net.uniform(0.2, 1.0))
    if net.chance(0.3):
        given["is_causal"] = 1
    return given


ATTENTIONS: dict[Callable[[Growing], None], float] = {
    caches: 0.4, rows_of_heads: 0.4, scores: 0.3, lengths: 0.3, turned: 0.4, linear: 0.4,
    causal_conv: 0.4, flexible: 0.3, gated: 0.3,
}  # fmt: skip
