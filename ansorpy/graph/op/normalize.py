"""Normalisations: each element scaled by its surroundings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType

__all__ = ["LayerNorm", "Lrn", "Softmax"]


@dataclass(frozen=True)
class Lrn(Op):
    """``x * (bias + alpha / size * sum of squares in a window of channels) ** -beta``."""

    size: int
    alpha: float
    beta: float
    bias: float
    axis: int = 1
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]


@dataclass(frozen=True)
class Softmax(Op):
    """``exp(x) / sum(exp(x))``, the sum over all of ``axes`` together.

    With ``guarded``, rows where that is NaN (all ``-inf``, say) give 0.
    """

    axes: Shape
    guarded: bool = False
    pattern: ClassVar[Pattern] = Pattern.OPAQUE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def reordered(self, perm: Shape) -> Op:
        return replace(self, axes=tuple(sorted(perm.index(a) for a in self.axes)))


@dataclass(frozen=True)
class LayerNorm(Op):
    """``(x - mean) / sqrt(variance + epsilon)``, both over all of ``axes`` together.

    Without ``centred`` the mean counts as 0: ``x / sqrt(mean of squares + epsilon)``.  Scale and
    offset are separate operators, fused after it.
    """

    axes: Shape
    epsilon: float
    centred: bool = True
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def reordered(self, perm: Shape) -> Op:
        return replace(self, axes=tuple(sorted(perm.index(a) for a in self.axes)))
