"""Values that follow from sizes alone: operators without operands."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops.base import Op, Pattern, Shape, TensorType
from ansorpy.graph.ops.indexing import chosen
from ansorpy.graph.ops.movement import flat
from ansorpy.graph.ops.names import Names, image_axes
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr, as_expr
from ansorpy.ir.extents import AnyExtent, dims_of, prod_of
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Iota", "Sizes", "SizesOp"]


@dataclass(frozen=True)
class SizesOp(Op):
    """Base of the operators without operands; their elements depend on their row-major positions.

    They are fused into their readers, wherever these are, as arithmetic is.
    """

    shape: Shape
    pattern: ClassVar[Pattern] = Pattern.ELEMENTWISE

    @property
    @abstractmethod
    def element_type(self) -> DType:
        """The element type of the result."""

    @abstractmethod
    def element(self, position: Expr) -> Expr:
        """The element at a row-major *position*."""

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.shape, self.element_type)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """One stage, whose elements depend on their index and on sizes."""

        def body(*i: Expr) -> Expr:
            return self.element(flat(i, self.shape)).astype(self.element_type)

        axes = image_axes(len(self.shape))
        return compute(self.shape, body, name=names.fresh(self.label), names=axes)


@dataclass(frozen=True)
class Sizes(SizesOp):
    """Extents as numbers, in row-major order."""

    extents: Shape
    dtype: DType = DType.INT64

    @property
    def element_type(self) -> DType:
        return self.dtype

    def element(self, position: Expr) -> Expr:
        numbers = range(len(self.extents))
        return chosen(position, numbers, lambda n: as_expr(self.extents[n]))

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        if dims_of(self.extents):
            return None
        return np.asarray(self.extents, self.dtype.numpy).reshape(self.shape)


@dataclass(frozen=True)
class Iota(SizesOp):
    """``start, start + step, ..`` in row-major order."""

    start: AnyExtent = 0
    step: AnyExtent = 1
    dtype: DType = DType.INT64

    @property
    def element_type(self) -> DType:
        return self.dtype

    def element(self, position: Expr) -> Expr:
        scaled = position if self.step == 1 else position * as_expr(self.step)
        return scaled if self.start == 0 else scaled + as_expr(self.start)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        if dims_of((*self.shape, self.start, self.step)):
            return None
        count: AnyExtent = prod_of(self.shape)
        positions = np.arange(count, dtype=np.int64).reshape(self.shape)
        return np.asarray(self.start + positions * self.step, self.dtype.numpy)
