"""Appending to a tensor in its own memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from ansorpy.graph.ops.base import Op, Pattern, Shape, TensorType
from ansorpy.graph.ops.concat import Concat
from ansorpy.graph.ops.names import Names
from ansorpy.ir.extents import dim_extent, extreme
from ansorpy.ir.strides import Strides, dense_strides, normalised
from ansorpy.ir.symbols import Dim, SizeOp
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["Extend"]


@dataclass(frozen=True)
class Extend(Op):
    """Join along ``axis``, where the first operand lies already and the others are written.

    The first operand is an input of the network, and the result an output in the same memory, which
    has room for ``capacity`` elements along the axis; ``None`` if calls do not state it, because it
    does not matter or the result fills the memory.  No pass moves the operator, and no kernel
    computes it: its operands are parts of its result (:mod:`ansorpy.graph.placement`).
    """

    axis: int
    capacity: Dim | None = None
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def strides(self, shape: Shape) -> Strides:
        """The strides of the result, of this *shape*."""
        if self.capacity is None:
            return dense_strides(shape)
        # The same at every capacity that a call may state, and never less than the result needs.
        room = extreme(SizeOp.MAX, dim_extent(self.capacity), shape[self.axis])
        whole = (*shape[: self.axis], room, *shape[self.axis + 1 :])
        return normalised(shape, dense_strides(whole))

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return Concat(self.axis).infer(inputs)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        return Concat(self.axis).define(inputs, names)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return Concat(self.axis).evaluate(inputs)
