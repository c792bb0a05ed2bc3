"""Normalisation over whole axes: layer, instance and root-mean-square norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders as b
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import prod_of
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["LayerNorm", "reordered_axes"]


@dataclass(frozen=True)
class LayerNorm(Op):
    """``(x - mean) / sqrt(variance + epsilon)``, both over all of ``axes`` together.

    Without ``centred``, the mean is taken as 0: ``x / sqrt(mean of squares + epsilon)``.  Scale and
    offset are separate operators, fused after it.
    """

    axes: Shape
    epsilon: float
    centred: bool = True
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """One stage each for sum, mean, sum of squared deviations, reciprocal root, and product.

        The statistics drop the axes that they reduce: ``[rows]`` for ``x[rows, size]``.  For 16-bit
        floats, all stages but the last are float32.
        """
        (x,) = inputs
        kept = [d for d in range(x.ndim) if d not in self.axes]
        size = prod_of(x.shape[d] for d in self.axes)
        count = float(size) if isinstance(size, int) else as_expr(size).astype(x.dtype.of_sums)
        shape = [x.shape[d] for d in kept]
        axes = [f"i{d}" for d in kept]

        def row(i: Sequence[Expr]) -> tuple[Expr, ...]:
            return tuple(i[d] for d in kept)

        def statistic(term: Callable[[tuple[Expr, ...]], Expr], name: str) -> ComputeOp:
            over = {d: reduce_axis(x.shape[d], name=f"k{d}") for d in self.axes}

            def body(*i: Expr) -> Expr:
                place = dict(zip(kept, i, strict=True)) | over
                index = tuple(place[d] for d in range(x.ndim))
                return b.sum(term(index), axis=tuple(over.values()))

            return compute(shape, body, name=names.fresh(name), names=axes)

        def per_row(fn: Callable[..., Expr], name: str) -> ComputeOp:
            return compute(shape, fn, name=names.fresh(name), names=axes)

        def centred(i: Sequence[Expr]) -> Expr:
            element = b.widened(x[tuple(i)])
            return element if mean is None else element - mean[row(i)]

        mean = None
        if self.centred:
            total = statistic(lambda i: b.widened(x[i]), "total")
            mean = per_row(lambda *i: total[i] / count, "mean")
        squares = statistic(lambda i: centred(i) * centred(i), "squares")
        root = per_row(lambda *i: b.rsqrt(squares[i] / count + self.epsilon), "root")

        def normed(*i: Expr) -> Expr:
            return (centred(i) * root[row(i)]).astype(x.dtype)

        return compute(x.shape, normed, name=names.fresh("norm"))

    def reordered(self, order: Shape) -> Op | None:
        axes = reordered_axes(self.axes, order)
        return None if axes is None else replace(self, axes=axes)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and 0 not in self.axes


def reordered_axes(axes: Shape, order: Shape) -> Shape | None:
    """The stored axes that the model's *axes* become in *order*.

    None if they include the model's last axis and none of them is innermost in *order*, because a
    norm over contiguous elements is worth a transpose.
    """
    if len(order) - 1 in axes and order[-1] not in axes:
        return None
    return tuple(sorted(order.index(a) for a in axes))
