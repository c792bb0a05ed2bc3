"""Attention as one definition: the rows of scores never leave the caches."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import Attention, broadcast
from ansorpy.graph.ops.matmul import matmul
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.windows import broadcast_index
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["attention"]


def attention(op: Attention, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``softmax(scale * q k + mask) v``; the sums divide the result, not every weight.

    Five stages and the mask: scores, each row's maximum, exponentials, their sum, the product with
    the values.
    """
    q, k, v, *mask = inputs
    scores = matmul(None, [q, k], names)
    square = broadcast([scores.shape, *(m.shape for m in mask)])
    scale = op.scale
    if mask:
        product, (given,) = scores, mask
        axes = tuple(f"i{d}" for d in range(len(square)))
        scores = compute(
            square,
            lambda *i: (
                product[broadcast_index(product.shape, i, square)] * scale
                + given[broadcast_index(given.shape, i, square)]
            ),
            name=names.fresh("masked"),
            names=axes,
        )
        scale = 1.0
    rows, keys = square[:-1], square[-1]
    over = [reduce_axis(keys, name=name) for name in ("jt", "js")]
    top = compute(
        rows, lambda *i: b.max(scores[(*i, over[0])], axis=over[0]), name=names.fresh("top")
    )

    def raised_at(*i: Expr) -> Expr:
        above = scores[i] - top[i[:-1]]
        return b.exp(above if scale == 1.0 else above * scale)

    raised = compute(square, raised_at, name=names.fresh("raised"))
    total = compute(
        rows, lambda *i: b.sum(raised[(*i, over[1])], axis=over[1]), name=names.fresh("total")
    )
    mixed = matmul(None, [raised, v], names)
    shape = tuple(mixed.shape[p] for p in op.perm)

    def result_at(*i: Expr) -> Expr:
        place = [i[op.perm.index(d)] for d in range(len(shape))]
        return mixed[tuple(place)] / total[broadcast_index(rows, place[:-1], mixed.shape[:-1])]

    return compute(shape, result_at, name=names.fresh("attention"))
