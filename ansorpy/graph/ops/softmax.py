"""Softmax over whole axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut
from ansorpy.graph.ops.layer_norm import reordered_axes
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.reduce import reduced
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr, ReduceKind
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Op):
    """``exp(x) / sum(exp(x))``, the sum over all of ``axes`` together.

    With ``guarded``, rows whose result is NaN (for example, all ``-inf``) give 0.
    """

    axes: Shape
    guarded: bool = False
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """Four stages: the maximum over ``axes``, the exponentials, their sum, the quotient.

        The sum is NaN exactly where one of its terms is.  For 16-bit floats, the exponentials and
        their sum are float32.
        """
        (x,) = inputs
        top = reduced(x, ReduceKind.MAX, self.axes, True, names.fresh("max"))

        def at(i: Sequence[Expr]) -> tuple[Expr | int, ...]:
            return tuple(0 if d in self.axes else a for d, a in enumerate(i))

        def raised(*i: Expr) -> Expr:
            return b.exp(b.widened(x[i]) - b.widened(top[at(i)]))

        exps = compute(x.shape, raised, name=names.fresh("exp"))
        total = reduced(exps, ReduceKind.SUM, self.axes, True, names.fresh("sum"))

        def quotient(*i: Expr) -> Expr:
            share, whole = exps[i] / total[at(i)], total[at(i)]
            share = b.select(whole.equal(whole), share, 0.0) if self.guarded else share
            return share.astype(x.dtype)

        return compute(x.shape, quotient, name=names.fresh("softmax"))

    def reordered(self, order: Shape) -> Op | None:
        axes = reordered_axes(self.axes, order)
        return None if axes is None else Softmax(axes, self.guarded)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and 0 not in self.axes
