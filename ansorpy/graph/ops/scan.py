"""Cumulative sums, each computed independently so that they can run in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import select
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["CumSum"]


@dataclass(frozen=True)
class CumSum(Op):
    """Along ``axis``, the sum of all elements up to each one, leaving it out if ``exclusive``.

    ``backwards`` sums from each element to the last.
    """

    axis: int
    exclusive: bool = False
    backwards: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[i]`` = the sum over ``k`` of ``x[k]`` where ``k <= i`` (or ``<``, ``>=``, ``>``).

        **Cost:** quadratic in the axis's extent.
        """
        (x,) = inputs
        zero = 0.0 if x.dtype.is_float else 0
        axis = self.axis

        def body(*i: Expr) -> Expr:
            k, at = reduce_axis(x.shape[axis], name="k"), i[axis]
            first, second = (at, k) if self.backwards else (k, at)
            counts = first < second if self.exclusive else first <= second
            return sum_over(select(counts, x[(*i[:axis], k, *i[axis + 1 :])], zero), axis=k)

        return compute(
            x.shape, body, name=names.fresh("cumsum"), names=tuple(f"i{d}" for d in range(x.ndim))
        )

    def reordered(self, order: Shape) -> Op:
        return replace(self, axis=order.index(self.axis))

    def on_rows(self, operands: Sequence[Rows], shape: Shape, rows: int) -> Op | None:
        return self if is_first_cut(operands) and self.axis > 0 else None
