"""Attention as networks have it: heads are views of projections, with masks, its result turned."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.ops import Attention
from ansorpy.graph.ops.names import Names
from ansorpy.ir.extents import Extent
from ansorpy.ir.tensor import Tensor, compute, placeholder

__all__ = ["heads_attend"]


def heads_attend(
    batch: int, rows: Extent, keys: Extent, heads: int, dim: int, *,
    masks: Sequence[tuple[Extent, ...]] = (), perm: tuple[int, ...] = (0, 2, 1, 3),
    guarded: bool = False,
) -> list[Tensor]:  # fmt: skip
    """``softmax(q k / sqrt(dim) + masks) v`` of ``[batch, rows or keys, heads, dim]``, turned by
    *perm* from ``[batch, heads, rows, dim]``."""
    size = {"q": rows, "k": keys, "v": keys}
    given = {n: placeholder((batch, t, heads, dim), name=f"{n}0") for n, t in size.items()}
    q = compute((batch, heads, rows, dim), lambda b, h, i, e: given["q"][b, i, h, e], name="q")
    k = compute((batch, heads, dim, keys), lambda b, h, e, j: given["k"][b, j, h, e], name="k")
    v = compute((batch, heads, keys, dim), lambda b, h, j, e: given["v"][b, j, h, e], name="v")
    added = [placeholder(shape, name=f"mask{n}") for n, shape in enumerate(masks)]
    op = Attention(dim**-0.5, perm, guarded)
    return [*given.values(), *added, op.define([q, k, v, *added], Names())]
