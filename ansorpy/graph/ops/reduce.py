"""Reductions over whole axes, to values and to indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, is_first_cut
from ansorpy.graph.ops.names import Names
from ansorpy.ir import builders
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr, ReduceKind
from ansorpy.ir.tensor import ComputeOp, Tensor, compute, reduce_axis

__all__ = ["ArgReduce", "Reduce", "reduced", "reduced_dtype", "reduced_value"]


def reduced_dtype(kind: ReduceKind, dtype: DType) -> DType:
    """The type of a reduction of values of *dtype*: sums of 16-bit floats are float32."""
    return dtype.of_sums if kind is ReduceKind.SUM else dtype


def reduced_value(kind: ReduceKind, x: Expr, axes: Sequence[Axis]) -> Expr:
    """*x* reduced over *axes*, in its :func:`reduced_dtype`."""
    return builders.REDUCTIONS[kind](x.astype(reduced_dtype(kind, x.dtype)), axes)


@dataclass(frozen=True)
class Reduce(Op):
    """Reduce over ``axes``, which are kept with extent 1 if ``keepdims``.

    Sums of 16-bit floats are float32, as means and norms would overflow before they are scaled.
    """

    kind: ReduceKind
    axes: Shape
    keepdims: bool
    pattern: ClassVar[Pattern] = Pattern.REDUCTION

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        kept = (
            (1 if d in self.axes else e) for d, e in enumerate(shape)
            if self.keepdims or d not in self.axes
        )  # fmt: skip
        return TensorType(tuple(kept), reduced_dtype(self.kind, inputs[0].dtype))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        return reduced(inputs[0], self.kind, self.axes, self.keepdims, names.fresh(self.label))

    def reordered(self, order: Shape) -> Op:
        return replace(self, axes=tuple(sorted(order.index(a) for a in self.axes)))

    def output_order(self, order: Shape) -> Shape:
        """Dropped axes are removed; the others are renumbered."""
        if self.keepdims:
            return order
        kept = [a for a in order if a not in self.axes]
        return tuple(sorted(kept).index(a) for a in kept)

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and 0 not in self.axes

    @property
    def label(self) -> str:
        return f"reduce_{self.kind.value}"


@dataclass(frozen=True)
class ArgReduce(Op):
    """The index of the MAX or MIN along ``axis``, which is kept with extent 1.

    Among equal elements the first one counts, or the last one if ``last``.
    """

    kind: ReduceKind
    axis: int
    last: bool = False
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        return TensorType((*shape[: self.axis], 1, *shape[self.axis + 1 :]), DType.INT64)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """The extreme value, then the smallest (or largest) index at which it occurs."""
        (x,) = inputs
        build = builders.argmax if self.kind is ReduceKind.MAX else builders.argmin
        axis = self.axis
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])

        def element(*at: Expr) -> Expr:
            *i, k = at
            return x[(*i[:axis], k, *i[axis + 1 :])]

        return build(shape, element, x.shape[axis], name=names.fresh(self.label), last=self.last)

    def reordered(self, order: Shape) -> Op:
        return replace(self, axis=order.index(self.axis))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return is_first_cut(operands) and self.axis > 0

    @property
    def label(self) -> str:
        return f"arg{self.kind.value}"


def reduced(x: Tensor, kind: ReduceKind, axes: Shape, keepdims: bool, name: str) -> ComputeOp:
    """A stage called *name* that reduces *x* over *axes*."""
    over = {d: reduce_axis(x.shape[d], name=f"k{d}") for d in axes if x.shape[d] != 1}
    kept = [d for d in range(x.ndim) if keepdims or d not in axes]
    shape = [1 if d in axes else x.shape[d] for d in kept]

    def body(*i: Expr) -> Expr:
        place = dict(zip(kept, i, strict=True))
        index = tuple(over[d] if d in over else 0 if d in axes else place[d] for d in range(x.ndim))
        return reduced_value(kind, x[index], tuple(over.values()))

    return compute(shape, body, name=name, names=tuple(f"i{d}" for d in kept))
