"""Local response normalisation across channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    channels_last_order,
    is_first_cut,
)
from ansorpy.graph.ops.elementwise import power
from ansorpy.graph.ops.indexing import guarded
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.builders import widened
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["Lrn"]


@dataclass(frozen=True)
class Lrn(Op):
    """``x * (bias + alpha / size * sum of squares in a window of channels) ** -beta``."""

    size: int
    alpha: float
    beta: float
    bias: float
    axis: int = 1
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """Squares, their windowed sum along ``axis``, and ``x * (bias + alpha/size*sum) ** -beta``.

        The window of channel ``c`` is ``c - floor((size-1)/2) .. c + ceil((size-1)/2)`` (ONNX LRN).
        For 16-bit floats, the squares and their sum are float32.
        """
        (x,) = inputs

        def squared(*i: Expr) -> Expr:
            return widened(x[i]) * widened(x[i])

        square = compute(x.shape, squared, name=names.fresh("square"))
        before = (self.size - 1) // 2
        k = reduce_axis(self.size, name="k")
        guards = [(self.axis, before > 0, self.size - 1 > before)]

        def window(*i: Expr) -> Expr:
            index = [a + k - before if d == self.axis else a for d, a in enumerate(i)]
            return sum_over(guarded(square, index, guards, 0.0), axis=k)

        total = compute(x.shape, window, name=names.fresh("window"))

        def scaled(*i: Expr) -> Expr:
            factor = power(total[i] * (self.alpha / self.size) + self.bias, -self.beta)
            return (widened(x[i]) * factor).astype(x.dtype)

        return compute(x.shape, scaled, name=names.fresh("lrn"))

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        last = channels_last_order(len(shape))
        return Arrangement(replace(self, axis=last.index(self.axis)), (Operand(last),), last)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.axis > 0
