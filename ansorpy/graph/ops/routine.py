"""Results of algorithms: sorting, compaction and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from ansorpy.graph.ops.base import Op, Pattern, Shape, TensorType
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dtypes import DType
from ansorpy.ir.routines.base import Routine
from ansorpy.ir.tensor import ComputeOp, Tensor, computed_by

__all__ = ["Computed"]


@dataclass(frozen=True)
class Computed(Op):
    """A tensor of this *shape* and type that *routine* computes; never fused."""

    routine: Routine
    shape: Shape
    dtype: DType
    pattern: ClassVar[Pattern] = Pattern.OPAQUE
    roles: ClassVar[tuple[str, ...]] = ("data",)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.shape, self.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        name = names.fresh(self.routine.name)
        return computed_by(self.routine, inputs, self.shape, self.dtype, name=name)

    def evaluate(self, inputs: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
        numbers = tuple(extent for extent in self.shape if isinstance(extent, int))
        return self.routine.evaluate(inputs, numbers) if len(numbers) == len(self.shape) else None

    @property
    def label(self) -> str:
        return self.routine.name
