"""Resampling along an axis: weighted sums of a few elements, at indices from a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import ClassVar

from ansorpy.graph.ops.base import (
    Arrangement,
    Op,
    Operand,
    Pattern,
    Rows,
    Shape,
    Stored,
    TensorType,
    identity_order,
    is_first_cut,
    types_of,
)
from ansorpy.graph.ops.indexing import clamped
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, ExprLike
from ansorpy.ir.extents import AnyExtent, most
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["Resample"]

_WRITTEN_OUT = 4
"""Maximum number of elements summed in one expression, without a loop; cubic curves need four."""


@dataclass(frozen=True)
class Resample(Op):
    """Along ``axis``, element ``i`` is the sum over ``t`` of ``weights[i, t] * x[places[i, t]]``.

    Inputs: x, the integers ``places``, and ``weights``, which are absent where elements are
    taken unchanged.  Both are ``[rows, elements]``, with at least ``size`` rows: that is the extent
    of the result's axis.
    """

    axis: int
    size: AnyExtent
    pattern: ClassVar[Pattern] = Pattern.COMPLEX
    enlarges: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, places, *_ = inputs
        if most(self.size - places.shape[0]) > 0:
            raise ValueError(f"{places.shape[0]} rows of places for {self.size} elements")
        shape = (*x.shape[: self.axis], self.size, *x.shape[self.axis + 1 :])
        return TensorType(shape, x.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[.., i, ..]``: the sum over ``t`` of ``weights[i, t] * x[.., places[i, t], ..]``."""
        x, places, *weights = inputs
        axis, taps = self.axis, places.shape[1]
        shape = self.infer(types_of(inputs)).shape

        def term(i: Sequence[Expr], t: ExprLike) -> Expr:
            # Clamped, so that no table can cause a read outside the data.
            place = clamped(places[i[axis], t].astype(DType.INT64), 0, x.shape[axis] - 1)
            value = x[(*i[:axis], place, *i[axis + 1 :])]
            return value * weights[0][i[axis], t] if weights else value

        def body(*i: Expr) -> Expr:
            if taps <= _WRITTEN_OUT:
                return reduce(add, [term(i, t) for t in range(taps)])
            k = reduce_axis(taps, name="t")
            return sum_over(term(i, k), axis=k)

        return compute(shape, body, name=names.fresh("resample"))

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        """The data are read as they are stored; the tables have no image axes."""
        data, *tables = operands
        op = replace(self, axis=data.order.index(self.axis))
        kept = (Operand(identity_order(len(table.shape))) for table in tables)
        return Arrangement(op, (Operand(data.order), *kept), data.order)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.axis > 0
