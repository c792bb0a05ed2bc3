"""Values that follow from sizes alone: operators without operands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops.base import (
    Arrangement,
    Op,
    Pattern,
    Rows,
    Shape,
    Stored,
    TensorType,
    identity_order,
)
from ansorpy.graph.ops.names import Names
from ansorpy.ir.builders import select
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import AnyExtent, dims_of
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Iota", "Sizes", "SizesOp"]


class SizesOp(Op):
    """Base of the operators without operands, whose results have at most one axis.

    They are fused into their readers, wherever these are, as arithmetic is.
    """

    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    @property
    @abstractmethod
    def type(self) -> TensorType:
        """The type of the result."""

    @abstractmethod
    def element(self, index: Sequence[Expr]) -> Expr:
        """The element at *index*."""

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return self.type

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """One stage, whose elements depend on their index and on sizes."""
        shape, dtype = self.type.shape, self.type.dtype
        return compute(
            shape, lambda *i: self.element(i).astype(dtype), name=names.fresh(self.label)
        )

    def arrange(self, operands: Sequence[Stored], shape: Shape) -> Arrangement:
        return Arrangement(self, (), identity_order(len(shape)))

    def on_rows(self, operands: Sequence[Rows], shape: Shape, rows: int) -> Op | None:
        """No operand is cut into pieces, so no piece needs other rows."""
        return None


@dataclass(frozen=True)
class Sizes(SizesOp):
    """Extents as numbers: a vector of them, or one if ``is_scalar``."""

    extents: Shape
    dtype: DType = DType.INT64
    is_scalar: bool = False

    @property
    def type(self) -> TensorType:
        return TensorType(() if self.is_scalar else (len(self.extents),), self.dtype)

    def element(self, index: Sequence[Expr]) -> Expr:
        """A choice between the extents by binary search, which keeps the expression flat."""

        def among(first: int, end: int) -> Expr:
            if end - first == 1:
                return as_expr(self.extents[first])
            middle = (first + end) // 2
            return select(index[0] < middle, among(first, middle), among(middle, end))

        return among(0, len(self.extents))

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        if dims_of(self.extents):
            return None
        return np.asarray(self.extents, self.dtype.numpy).reshape(self.type.shape)


@dataclass(frozen=True)
class Iota(SizesOp):
    """``start, start + step, ..``: *size* numbers."""

    size: AnyExtent
    start: AnyExtent = 0
    step: AnyExtent = 1
    dtype: DType = DType.INT64

    @property
    def type(self) -> TensorType:
        return TensorType((self.size,), self.dtype)

    def element(self, index: Sequence[Expr]) -> Expr:
        (i,) = index
        scaled = i if self.step == 1 else i * as_expr(self.step)
        return scaled if self.start == 0 else scaled + as_expr(self.start)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        if dims_of((self.size, self.start, self.step)):
            return None
        numbers = self.start + np.arange(self.size, dtype=np.int64) * self.step
        return np.asarray(numbers, self.dtype.numpy)
