"""Running sums, each computed separately, so that none waits for another."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import CumSum
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["cumulative_sum"]


def cumulative_sum(op: CumSum, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[i]`` = the sum over ``k`` of ``x[k]`` where ``k <= i`` (or ``<``, ``>=``, ``>``).

    **Cost:** quadratic in the axis's extent.
    """
    (x,) = inputs
    zero = 0.0 if x.dtype.is_float else 0

    def body(*i: Expr) -> Expr:
        k, at = reduce_axis(x.shape[op.axis], name="k"), i[op.axis]
        first, second = (at, k) if op.backwards else (k, at)
        counts = first < second if op.exclusive else first <= second
        return sum_over(select(counts, x[(*i[: op.axis], k, *i[op.axis + 1 :])], zero), axis=k)

    return compute(
        x.shape, body, name=names.fresh("cumsum"), names=tuple(f"i{d}" for d in range(x.ndim))
    )
