"""Weighted sums of a few elements along an axis, at indices from a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from ansorpy.graph.op import Resample, TensorType
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import maximum, minimum
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ExprLike
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["resample"]

_WRITTEN_OUT = 4
"""The most elements summed in one expression, without a loop; cubic curves need four."""


def resample(op: Resample, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[.., i, ..]`` = the sum over ``t`` of ``weights[i, t] * x[.., places[i, t], ..]``."""
    x, places, *weights = inputs
    axis, taps = op.axis, places.shape[1]
    shape = op.infer([TensorType(t.shape, t.dtype) for t in inputs]).shape

    def term(i: Sequence[Expr], t: ExprLike) -> Expr:
        # Clamped, so that no table can cause a read outside the data.
        place = minimum(maximum(places[i[axis], t].astype(DType.INT64), 0), x.shape[axis] - 1)
        value = x[(*i[:axis], place, *i[axis + 1 :])]
        return value * weights[0][i[axis], t] if weights else value

    def body(*i: Expr) -> Expr:
        if taps <= _WRITTEN_OUT:
            return reduce(add, [term(i, t) for t in range(taps)])
        k = reduce_axis(taps, name="t")
        return sum_over(term(i, k), axis=k)

    return compute(
        shape, body, name=names.fresh("resample"), names=tuple(f"i{d}" for d in range(len(shape)))
    )
