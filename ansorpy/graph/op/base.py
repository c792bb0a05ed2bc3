"""The base class of operators: type rule and fusion pattern; and functions on shapes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from ansorpy.ir.dtypes import DType

__all__ = [
    "NARROW", "Op", "Pattern", "Shape", "TensorType", "broadcast", "common_dtype", "pick",
    "product_dtype", "runs",
]  # fmt: skip

NARROW = (DType.INT8, DType.UINT8)
"""Products of these are summed as int32, which is exact; their signs may differ."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor: a static shape and an element type."""

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes


class Pattern(IntEnum):
    """How an operator may be fused; a larger value is harder to fuse.

    ELEMENTWISE reads each input at its own (broadcast) index.  INJECTIVE reads one element of one
    input, anywhere, per output element.  REDUCTION accepts both before it and ELEMENTWISE after it.
    COMPLEX (convolution, matrix product, pooling) accepts ELEMENTWISE after it.  OPAQUE
    stays alone.
    """

    ELEMENTWISE = 0
    INJECTIVE = 1
    REDUCTION = 2
    COMPLEX = 3
    OPAQUE = 4


class Op(ABC):
    """Base of all operators."""

    pattern: ClassVar[Pattern]
    moves_only: ClassVar[bool] = False
    """True when the operator is only an index map, free if its reader applies it."""

    @abstractmethod
    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        """Shape and type of the output; raises ``ValueError`` for inputs that do not fit."""

    def reordered(self, perm: Shape) -> Op | None:
        """The same operator on operands whose stored axis ``d`` is the model's axis ``perm[d]``.

        None if it takes its operands only in the model's order.
        """
        return self if self.pattern is Pattern.ELEMENTWISE else None

    def output_order(self, perm: Shape) -> Shape:
        """Stored order of the result of :meth:`reordered`."""
        return perm

    @property
    def label(self) -> str:
        """A short lower-case word for names and tables."""
        return type(self).__name__.lower()


def common_dtype(inputs: Sequence[TensorType]) -> DType:
    """The common element type of *inputs*; raises ``ValueError`` if they have several."""
    found = {t.dtype for t in inputs}
    if len(found) > 1:
        names = ", ".join(sorted(dtype.value for dtype in found))
        raise ValueError(f"operands have different element types: {names}")
    return inputs[0].dtype


def product_dtype(inputs: Sequence[TensorType]) -> DType:
    """The element type of sums of products of *inputs*."""
    return DType.INT32 if all(t.dtype in NARROW for t in inputs) else common_dtype(inputs)


def pick(values: Shape, perm: Shape) -> Shape:
    """*values*, one per axis, in the order *perm*."""
    return tuple(values[p] for p in perm)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The numpy broadcast of *shapes*; raises ``ValueError`` when two extents disagree."""
    rank = max(len(shape) for shape in shapes)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    columns = zip(*aligned, strict=True)
    result = tuple(next((e for e in column if e != 1), 1) for column in columns)
    for shape in aligned:
        if any(e not in (1, r) for e, r in zip(shape, result, strict=True)):
            raise ValueError(f"shapes {list(shapes)} do not broadcast")
    return result


def runs(before: Shape, after: Shape) -> Iterator[tuple[Shape, Shape]]:
    """The shortest runs of axes of *before* that become runs of *after*, in order."""
    i = j = 0
    while i < len(before) or j < len(after):
        first, second = i, j
        left, i = (before[i], i + 1) if i < len(before) else (1, i)
        right, j = (after[j], j + 1) if j < len(after) else (1, j)
        while left != right:
            if left < right:
                left, i = left * before[i], i + 1
            else:
                right, j = right * after[j], j + 1
        yield tuple(range(first, i)), tuple(range(second, j))
