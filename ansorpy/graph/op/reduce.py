"""Reductions over whole axes, to values and to indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType
from ansorpy.ir.dtypes import DType

__all__ = ["ArgReduce", "Reduce", "ReduceOp"]


class ReduceOp(Enum):
    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


@dataclass(frozen=True)
class Reduce(Op):
    """Reduce over ``axes``, which are kept with extent 1 if ``keepdims``.

    Sums of 16-bit floats are float32: means and norms need them before they are scaled down.
    """

    kind: ReduceOp
    axes: Shape
    keepdims: bool
    pattern: ClassVar[Pattern] = Pattern.REDUCTION

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        kept = (
            (1 if d in self.axes else e) for d, e in enumerate(shape)
            if self.keepdims or d not in self.axes
        )  # fmt: skip
        dtype = inputs[0].dtype
        return TensorType(tuple(kept), dtype.of_sums if self.kind is ReduceOp.SUM else dtype)

    def reordered(self, perm: Shape) -> Op:
        return Reduce(self.kind, tuple(sorted(perm.index(a) for a in self.axes)), self.keepdims)

    def output_order(self, perm: Shape) -> Shape:
        """Dropped axes are removed; the others are renumbered."""
        if self.keepdims:
            return perm
        kept = [a for a in perm if a not in self.axes]
        return tuple(sorted(kept).index(a) for a in kept)

    @property
    def label(self) -> str:
        return f"reduce_{self.kind.value}"


@dataclass(frozen=True)
class ArgReduce(Op):
    """The index of the MAX or MIN along ``axis``, which is kept with extent 1.

    The first of equal elements, or with ``last`` the last.
    """

    kind: ReduceOp
    axis: int
    last: bool = False
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        return TensorType((*shape[: self.axis], 1, *shape[self.axis + 1 :]), DType.INT64)

    def reordered(self, perm: Shape) -> Op:
        return ArgReduce(self.kind, perm.index(self.axis), self.last)

    @property
    def label(self) -> str:
        return f"arg{self.kind.value}"
