"""Cumulative reductions: each element is computed by itself, so they can run in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import REDUCTIONS, select
from ansorpy.ir.expr import Expr, ReduceKind
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["Cumulative"]


@dataclass(frozen=True)
class Cumulative(Op):
    """Along ``axis``, the reduction of all elements up to each one, a sum or product for example.

    It is left out if ``exclusive``.  If ``backwards``, these are the elements from it to the last.
    """

    kind: ReduceKind
    axis: int
    exclusive: bool = False
    backwards: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[i]`` = the reduction of ``x[k]`` where ``k <= i`` (or ``<``, ``>=``, ``>``).

        **Cost:** quadratic in the axis's extent.
        """
        (x,) = inputs
        axis, neutral = self.axis, self.kind.identity(x.dtype)

        def body(*i: Expr) -> Expr:
            k, at = reduce_axis(x.shape[axis], name="k"), i[axis]
            first, second = (at, k) if self.backwards else (k, at)
            counts = first < second if self.exclusive else first <= second
            term = select(counts, x[(*i[:axis], k, *i[axis + 1 :])], neutral)
            return REDUCTIONS[self.kind](term, axis=k)

        return compute(x.shape, body, name=names.fresh(self.label))

    def reordered(self, order: Shape) -> Op:
        return replace(self, axis=order.index(self.axis))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.axis > 0

    @property
    def label(self) -> str:
        return f"cum{self.kind.value}"
