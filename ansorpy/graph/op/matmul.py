"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType, broadcast, product_dtype

__all__ = ["MatMul"]


@dataclass(frozen=True)
class MatMul(Op):
    """Matrix product of the last two axes, leading axes broadcast: ``[.., m, k] x [.., k, n]``.

    The result's axes are then permuted as by :class:`Transpose`; ``()`` leaves them.
    """

    perm: Shape = ()
    pattern: ClassVar[Pattern] = Pattern.COMPLEX

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = inputs
        if a.shape[-1] != b.shape[-2]:
            raise ValueError(f"inner sizes differ: {a.shape} x {b.shape}")
        batch = broadcast([a.shape[:-2], b.shape[:-2]])
        shape = (*batch, a.shape[-2], b.shape[-1])
        turned = tuple(shape[p] for p in self.perm) if self.perm else shape
        return TensorType(turned, product_dtype(inputs))
