"""Reductions over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType
from ansorpy.graph.op.conv import windows

__all__ = ["Pool", "PoolKind"]


class PoolKind(Enum):
    MAX = "max"
    SUM = "sum"


@dataclass(frozen=True)
class Pool(Op):
    """Reduce each window; positions outside the data count as the reduction's identity.

    Sums of 16-bit floats are float32, as those of :class:`Reduce`.
    """

    kind: PoolKind
    kernel: Shape
    strides: Shape
    pads_begin: Shape
    pads_end: Shape
    dilations: Shape
    channels_last: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        (data,) = inputs
        spatial = data.shape[1:-1] if self.channels_last else data.shape[2:]
        out = windows(
            spatial, self.kernel, self.strides, self.pads_begin, self.pads_end, self.dilations
        )
        dtype = data.dtype.of_sums if self.kind is PoolKind.SUM else data.dtype
        if self.channels_last:
            return TensorType((data.shape[0], *out, data.shape[-1]), dtype)
        return TensorType((*data.shape[:2], *out), dtype)

    @property
    def label(self) -> str:
        return f"{self.kind.value}pool"
