"""Attention of all heads at once beside torch's fused attention."""

from __future__ import annotations

from functools import partial
from typing import Any

from ansorpy.ir import builders as ap
from ansorpy.ir.expr import Axis, Expr
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis
from benchmarks.cuda.figures.base import TOLERANCES, Figures, FigureSettings, compare, tuned
from benchmarks.cuda.timing import by_events, in_turns

__all__ = ["attention", "measure_attention"]

_HEADS = 16


def attention(length: int, width: int, heads: int = _HEADS) -> list[Tensor]:
    """``softmax(q k^T / sqrt(width)) v``, all ``[1, heads, length, width]``.

    Inputs and output are float16, scores and sums float32, as in fused attention.
    """
    shape = (1, heads, length, width)
    q, k, v = (placeholder(shape, "float16", name=name) for name in "qkv")
    e, scale = reduce_axis(width, name="e"), width**-0.5

    def key() -> Axis:
        return reduce_axis(length, name="key")

    def product(n: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        factors = q[n, h, i, e], k[n, h, j, e]
        return ap.sum(factors[0].astype("float32") * factors[1].astype("float32"), axis=e)

    def raise_(n: Expr, h: Expr, i: Expr, j: Expr) -> Expr:
        return ap.exp((scores[n, h, i, j] - top[n, h, i]) * scale).astype("float16")

    def sum_rows(n: Expr, h: Expr, i: Expr) -> Expr:
        return ap.sum(raised[n, h, i, j2].astype("float32"), axis=j2)

    def mix(n: Expr, h: Expr, i: Expr, o: Expr) -> Expr:
        weight = raised[n, h, i, j3].astype("float32")
        return ap.sum(weight * v[n, h, j3, o].astype("float32"), axis=j3)

    def divide(n: Expr, h: Expr, i: Expr, o: Expr) -> Expr:
        return (mixed[n, h, i, o] / total[n, h, i]).astype("float16")

    j1, j2, j3 = key(), key(), key()
    rows = shape[:3]
    scores = compute((*rows, length), product, name="scores")
    top = compute(rows, lambda n, h, i: ap.max(scores[n, h, i, j1], axis=j1), name="top")
    raised = compute((*rows, length), raise_, name="raised")
    total = compute(rows, sum_rows, name="total")
    mixed = compute(shape, mix, name="mixed")
    return [q, k, v, compute(shape, divide, name="attention")]


def measure_attention(
    length: int,
    width: int,
    torch: Any,
    settings: FigureSettings,
    limit_s: float,
    heads: int = _HEADS,
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
