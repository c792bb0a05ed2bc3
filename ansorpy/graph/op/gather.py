"""Reading at places that data names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType

__all__ = ["Gather"]


@dataclass(frozen=True)
class Gather(Op):
    """``data`` at ``indices`` along ``axis``: the indices' axes take that axis's place.

    Inputs are data and integer indices.  Indices count from the end where negative; those outside
    wrap around, so that no element outside the data is ever read.
    """

    axis: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, indices = inputs
        if not indices.dtype.is_int:
            raise ValueError(f"indices are {indices.dtype.value}, not integers")
        shape: Shape = data.shape[: self.axis] + indices.shape + data.shape[self.axis + 1 :]
        return TensorType(shape, data.dtype)
