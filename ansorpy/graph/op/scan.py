"""Running sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType

__all__ = ["CumSum"]


@dataclass(frozen=True)
class CumSum(Op):
    """Along ``axis``, the sum of all elements up to each one, without itself if ``exclusive``.

    ``backwards`` sums from each element to the last.
    """

    axis: int
    exclusive: bool = False
    backwards: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def reordered(self, perm: Shape) -> Op:
        return CumSum(perm.index(self.axis), self.exclusive, self.backwards)
