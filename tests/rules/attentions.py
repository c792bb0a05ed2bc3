"""Attention as networks have it: heads are views of projections, with masks, its result turned."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.ops import Attention
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import Extent
from ansorpy.ir.tensor import Tensor, compute, placeholder, reduce_axis

__all__ = ["attend", "heads_attend"]


def heads_attend(
    batch: int, rows: Extent, keys: Extent, heads: int, dim: int, *,
    masks: Sequence[tuple[Extent, ...]] = (), perm: tuple[int, ...] = (0, 2, 1, 3),
    guarded: bool = False, shared: int = 1, dtype: str = "float32",
) -> list[Tensor]:  # fmt: skip
    """``softmax(q k / sqrt(dim) + masks) v`` of ``[batch, rows or keys, heads, dim]``, turned by
    *perm* from ``[batch, heads, rows, dim]``; *shared* heads have the same keys and values."""
    size = {"q": (rows, heads), "k": (keys, heads // shared), "v": (keys, heads // shared)}
    given = {
        n: placeholder((batch, t, own, dim), dtype, name=f"{n}0") for n, (t, own) in size.items()
    }
    q = compute((batch, heads, rows, dim), lambda b, h, i, e: given["q"][b, i, h, e], name="q")
    k = compute(
        (batch, heads, dim, keys), lambda b, h, e, j: given["k"][b, j, h // shared, e], name="k"
    )
    v = compute(
        (batch, heads, keys, dim), lambda b, h, j, e: given["v"][b, j, h // shared, e], name="v"
    )
    added = [placeholder(shape, dtype, name=f"mask{n}") for n, shape in enumerate(masks)]
    op = Attention(dim**-0.5, perm, guarded)
    return [*given.values(), *added, op.define([q, k, v, *added], Names())]


def attend(
    heads: int, rows: int, keys: int, dim: int, wide: int, *, late: bool = True,
    narrow: bool = True,
    dtype: str = "float16",
) -> list[Tensor]:  # fmt: skip
    """Attention as a person writes it, scores in float32; without *late*, weights are divided.

    With *narrow*, exponentials have the type of the values before they are summed.
    """
    q = placeholder((heads, rows, dim), dtype, name="q")
    k, v = (placeholder((heads, keys, n), dtype, name=s) for n, s in ((dim, "k"), (wide, "v")))
    e, over = reduce_axis(dim, name="e"), [reduce_axis(keys, name=n) for n in ("jt", "js", "jm")]

    def score(h: Expr, i: Expr, j: Expr) -> Expr:
        return b.sum(b.widened(q[h, i, e]) * b.widened(k[h, j, e]), axis=e)

    scores = compute((heads, rows, keys), score, name="scores")
    top = compute(
        (heads, rows), lambda h, i: b.max(scores[h, i, over[0]], axis=over[0]), name="top"
    )

    def raised_at(h: Expr, i: Expr, j: Expr) -> Expr:
        power = b.exp((scores[h, i, j] - top[h, i]) * dim**-0.5)
        return power.astype(dtype) if narrow else power

    raised = compute(scores.shape, raised_at, name="raised")
    total = compute(
        (heads, rows),
        lambda h, i: b.sum(b.widened(raised[h, i, over[1]]), axis=over[1]),
        name="total",
    )

    def mixed_at(h: Expr, i: Expr, o: Expr) -> Expr:
        weight = b.widened(raised[h, i, over[2]])
        weight = weight if late else weight / total[h, i]
        return b.sum(b.widened(weight.astype(dtype)) * b.widened(v[h, over[2], o]), axis=over[2])

    mixed = compute((heads, rows, wide), mixed_at, name="mixed")

    def result(h: Expr, i: Expr, o: Expr) -> Expr:
        return (mixed[h, i, o] / total[h, i] if late else mixed[h, i, o]).astype(dtype)

    return [q, k, v, compute((heads, rows, wide), result, name="out")]
