"""Resampling along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, TensorType

__all__ = ["Resample"]


@dataclass(frozen=True)
class Resample(Op):
    """Along ``axis``, element ``i`` is the sum over ``t`` of ``weights[i, t] * x[places[i, t]]``.

    Inputs: x, the integers ``places``, and ``weights``, which are absent where elements are
    taken unchanged.  Both are constants, ``[size of the result's axis, elements]``.
    """

    axis: int
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        x, places, *_ = inputs
        shape = (*x.shape[: self.axis], places.shape[0], *x.shape[self.axis + 1 :])
        return TensorType(shape, x.dtype)
