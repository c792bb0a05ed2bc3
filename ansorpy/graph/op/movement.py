"""Operators that only move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType, broadcast, common_dtype, pick

__all__ = [
    "Concat",
    "Expand",
    "Pad",
    "PadMode",
    "Repeat",
    "Reshape",
    "Shuffle",
    "Slice",
    "Transpose",
]


@dataclass(frozen=True)
class Concat(Op):
    """Join along ``axis``."""

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

    def reordered(self, perm: Shape) -> Op:
        return Concat(perm.index(self.axis))


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in the same row-major order under another shape."""

    shape: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if math.prod(self.shape) != inputs[0].size:
            raise ValueError(f"{inputs[0].shape} cannot be reshaped to {self.shape}")
        return TensorType(self.shape, inputs[0].dtype)


@dataclass(frozen=True)
class Expand(Op):
    """Broadcast to ``shape``: repeat axes of extent one, and add axes in front."""

    shape: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        if broadcast([inputs[0].shape, self.shape]) != self.shape:
            raise ValueError(f"{inputs[0].shape} cannot be expanded to {self.shape}")
        return TensorType(self.shape, inputs[0].dtype)

    def reordered(self, perm: Shape) -> Op | None:
        return Expand(pick(self.shape, perm)) if len(perm) == len(self.shape) else None


@dataclass(frozen=True)
class Transpose(Op):
    """Output axis ``d`` is input axis ``perm[d]``."""

    perm: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(tuple(inputs[0].shape[p] for p in self.perm), inputs[0].dtype)


@dataclass(frozen=True)
class Shuffle(Op):
    """Split ``axis`` into ``factors``, permute these axes by ``perm``, merge them again."""

    axis: int
    factors: Shape
    perm: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def reordered(self, perm: Shape) -> Op:
        return Shuffle(perm.index(self.axis), self.factors, self.perm)


@dataclass(frozen=True)
class Repeat(Op):
    """Repeat each element ``times[d]`` times in a row along axis ``d``."""

    times: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = tuple(e * k for e, k in zip(inputs[0].shape, self.times, strict=True))
        return TensorType(shape, inputs[0].dtype)

    def reordered(self, perm: Shape) -> Op:
        return Repeat(pick(self.times, perm))


@dataclass(frozen=True)
class Slice(Op):
    """Element ``i`` along axis ``d`` is input element ``starts[d] + i * steps[d]``."""

    starts: Shape
    sizes: Shape
    steps: Shape
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE
    moves_only: ClassVar[bool] = True

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.sizes, inputs[0].dtype)

    def reordered(self, perm: Shape) -> Op:
        return Slice(pick(self.starts, perm), pick(self.sizes, perm), pick(self.steps, perm))


class PadMode(Enum):
    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"


@dataclass(frozen=True)
class Pad(Op):
    """Extend each axis; ``value`` fills CONSTANT padding.  Negative amounts crop."""

    begin: Shape
    end: Shape
    mode: PadMode
    value: float
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = tuple(
            b + e + a for b, e, a in zip(self.begin, inputs[0].shape, self.end, strict=True)
        )
        return TensorType(shape, inputs[0].dtype)

    def reordered(self, perm: Shape) -> Op:
        return Pad(pick(self.begin, perm), pick(self.end, perm), self.mode, self.value)
