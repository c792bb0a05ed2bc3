"""Attention of all heads at once beside torch's fused attention."""

from __future__ import annotations

from functools import partial
from typing import Any

from ansorpy.graph.ops.attention import Attention
from ansorpy.graph.ops.names import Names
from ansorpy.ir.tensor import Tensor, compute, placeholder
from benchmarks.cuda.figures.base import TOLERANCES, Figures, Settings, compare, tuned
from benchmarks.cuda.timing import by_events, in_turns

__all__ = ["attention", "measure_attention"]

_HEADS = 16


def attention(length: int, width: int, heads: int = _HEADS) -> list[Tensor]:
    """``softmax(q k^T / sqrt(width)) v``, all ``[1, heads, length, width]``, as networks have it.

    Inputs and output are float16; sums are float32.
    """
    shape = (1, heads, length, width)
    q, k, v = (placeholder(shape, "float16", name=name) for name in "qkv")
    turned = compute((1, heads, width, length), lambda b, h, e, j: k[b, h, j, e], name="kt")
    return [q, k, v, Attention(width**-0.5, (0, 1, 2, 3)).define([q, turned, v], Names())]


def measure_attention(
    length: int, width: int, torch: Any, settings: Settings, limit_s: float, heads: int = _HEADS
) -> Figures:
    """*length* queries and keys, *heads* heads, *width* wide."""
    tensors = attention(length, width, heads)
    kernel = tuned(tensors, settings, limit_s, trials=2 * settings.trials)
    q, k, v = (torch.randn(1, heads, length, width).half() for _ in range(3))
    out = torch.empty_like(q)
    run = kernel.prepare(q, k, v, out=out)
    run()
    fused = partial(torch.nn.functional.scaled_dot_product_attention, q, k, v)
    compare(out, fused(), TOLERANCES["float16"])
    ours_s, peer_s = in_turns(run.seconds, by_events(torch, fused))
    note = f"{heads} heads, {length} long, {width} wide"
    return Figures(ours_s, peer_s, note, "float16", "float32", "scaled_dot_product_attention")
