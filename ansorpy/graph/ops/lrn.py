"""Local response normalisation across channels."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import Lrn
from ansorpy.graph.ops.elementwise import power
from ansorpy.graph.ops.names import Names
from ansorpy.graph.ops.windows import guarded
from ansorpy.ir.builders import sum as sum_over
from ansorpy.ir.builders import widened
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["lrn"]


def lrn(op: Lrn, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """Squares, their windowed sum along ``op.axis``, and ``x * (bias + alpha/size*sum) ** -beta``.

    The window of channel ``c`` is ``c - floor((size-1)/2) .. c + ceil((size-1)/2)`` (ONNX LRN).
    For 16-bit floats the squares and their sum are float32.
    """
    (x,) = inputs
    axes = tuple(f"i{d}" for d in range(x.ndim))

    def squared(*i: Expr) -> Expr:
        return widened(x[i]) * widened(x[i])

    square = compute(x.shape, squared, name=names.fresh("square"), names=axes)
    before = (op.size - 1) // 2
    k = reduce_axis(op.size, name="k")
    guards = [(op.axis, before > 0, op.size - 1 > before)]

    def window(*i: Expr) -> Expr:
        index = [a + k - before if d == op.axis else a for d, a in enumerate(i)]
        return sum_over(guarded(square, index, guards, 0.0), axis=k)

    total = compute(x.shape, window, name=names.fresh("window"), names=axes)

    def scaled(*i: Expr) -> Expr:
        factor = power(total[i] * (op.alpha / op.size) + op.bias, -op.beta)
        return (widened(x[i]) * factor).astype(x.dtype)

    return compute(x.shape, scaled, name=names.fresh("lrn"), names=axes)
