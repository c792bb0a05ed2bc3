"""Attention as one definition, so that rows of scores stay in the caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import (
    Op,
    Pattern,
    Rows,
    Shape,
    TensorType,
    are_broadcast_rows,
    broadcast,
    pick,
)
from ansorpy.graph.ops.indexing import broadcast_index
from ansorpy.graph.ops.matmul import MatMul, matmul
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["Attention"]


@dataclass(frozen=True)
class Attention(Op):
    """``softmax(scale * q k + masks) v``, then axes permuted as :class:`Transpose` does.

    Inputs: q ``[.., i, d]``, k ``[.., d, j]``, v ``[.., j, e]`` and any number of masks that
    broadcast to ``[.., i, j]``; the softmax is over ``j``, ``guarded`` as in :class:`Softmax`.
    """

    scale: float
    perm: Shape
    guarded: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX
    roles: ClassVar[tuple[str, ...]] = ("query", "key", "value")

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        scores = MatMul().infer(inputs[:2])
        shape = MatMul().infer([scores, inputs[2]]).shape
        return TensorType(pick(shape, self.perm), scores.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``softmax(scale * q k + masks) v``; the result is divided by the sums, not each weight.

        Its stages are the scores, the masks (if any), each row's maximum, the exponentials, their
        sum, the product with the values, and the result.  For 16-bit floats both sums are float32,
        as they grow with the number of keys; the exponentials are 16-bit so that tensor cores can
        multiply them with the values.
        """
        q, k, v, *masks = inputs
        scores: ComputeOp = matmul([q, k], names)
        scale = self.scale
        if masks:
            scores, scale = _masked(scores, scale, masks, names), 1.0
        square = scores.shape
        rows, keys = square[:-1], square[-1]
        over = [reduce_axis(keys, name=name) for name in ("jt", "js")]
        top = compute(
            rows, lambda *i: b.max(scores[(*i, over[0])], axis=over[0]), name=names.fresh("top")
        )

        def raised_at(*i: Expr) -> Expr:
            above = b.widened(scores[i]) - b.widened(top[i[:-1]])
            return b.exp(above if scale == 1.0 else above * scale).astype(scores.dtype)

        def total_at(*i: Expr) -> Expr:
            return b.sum(b.widened(raised[(*i, over[1])]), axis=over[1])

        raised = compute(square, raised_at, name=names.fresh("raised"))
        total = compute(rows, total_at, name=names.fresh("total"))
        mixed = matmul([raised, v], names, wide=True)
        shape = pick(mixed.shape, self.perm)

        def result_at(*i: Expr) -> Expr:
            place = [i[self.perm.index(d)] for d in range(len(shape))]
            whole = total[broadcast_index(rows, place[:-1], mixed.shape[:-1])]
            share = mixed[tuple(place)] / whole
            share = b.select(whole.equal(whole), share, 0.0) if self.guarded else share
            return share.astype(scores.dtype)

        return compute(shape, result_at, name=names.fresh("attention"))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        q, k, v, *masks = operands
        is_cut = all(o.cut and len(o.shape) == len(shape) > 2 for o in (q, k, v))
        return self.perm[0] == 0 and is_cut and are_broadcast_rows(masks, shape)


def _masked(scores: Tensor, scale: float, masks: Sequence[Tensor], names: Names) -> ComputeOp:
    """``scores * scale`` and all of *masks*, broadcast."""
    square = broadcast([scores.shape, *(m.shape for m in masks)])

    def body(*i: Expr) -> Expr:
        total = scores[broadcast_index(scores.shape, i, square)] * scale
        for mask in masks:
            total = total + mask[broadcast_index(mask.shape, i, square)]
        return total

    return compute(square, body, name=names.fresh("masked"))
