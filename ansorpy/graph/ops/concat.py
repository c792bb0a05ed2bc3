"""Joining tensors along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, common_dtype
from ansorpy.graph.ops.indexing import chosen
from ansorpy.graph.ops.names import Names
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Concat"]


@dataclass(frozen=True)
class Concat(Op):
    """Join along ``axis``, which may be negative."""

    axis: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        first = inputs[0]
        rest = {t.shape[: self.axis] + t.shape[self.axis + 1 :] for t in inputs}
        if len(rest) > 1:
            raise ValueError(f"parts differ outside axis {self.axis}: {[t.shape for t in inputs]}")
        total = sum(t.shape[self.axis] for t in inputs)
        shape = (*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])
        return TensorType(shape, common_dtype(inputs))

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """One stage that selects the part by the index along ``axis``."""
        axis = self.axis % inputs[0].ndim
        *starts, extent = accumulate((t.shape[axis] for t in inputs), initial=0)
        shape = list(inputs[0].shape)
        shape[axis] = extent

        def body(*i: Expr) -> Expr:
            def part(n: int) -> Expr:
                local = i[axis] - starts[n] if n else i[axis]
                return inputs[n][(*i[:axis], local, *i[axis + 1 :])]

            return chosen(i[axis], starts, part)

        return compute(shape, body, name=names.fresh("concat"))

    def reordered(self, order: Shape) -> Op:
        return Concat(order.index(self.axis))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return self.axis > 0 and all(o.cut for o in operands)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(inputs, self.axis)
