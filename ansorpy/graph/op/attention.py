"""Attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType
from ansorpy.graph.op.matmul import MatMul

__all__ = ["Attention"]


@dataclass(frozen=True)
class Attention(Op):
    """``softmax(scale * q k + masks) v``, then axes permuted as :class:`Transpose` does.

    Inputs: q ``[.., i, d]``, k ``[.., d, j]``, v ``[.., j, e]`` and any number of masks that
    broadcast to ``[.., i, j]``; the softmax is over ``j``, ``guarded`` as in :class:`Softmax`.
    """

    scale: float
    perm: Shape
    guarded: bool = False
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        scores = MatMul().infer(inputs[:2])
        shape = MatMul().infer([scores, inputs[2]]).shape
        return TensorType(tuple(shape[p] for p in self.perm), scores.dtype)
