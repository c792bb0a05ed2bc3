"""Reading at indices that are data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.op.base import Op, Pattern, Shape, TensorType

__all__ = ["Gather", "GatherElements", "GatherND"]


@dataclass(frozen=True)
class Gather(Op):
    """``data`` at ``indices`` along ``axis``, which the axes of ``indices`` replace.

    Inputs are data and integer indices.  Negative indices count from the end; those out of range
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


@dataclass(frozen=True)
class GatherElements(Op):
    """Each element by its own index along ``axis``: ``data[i, indices[i, j, k], k]``.

    Inputs are data and integer indices of the same rank, read as :class:`Gather` reads them.
    """

    axis: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, indices = inputs
        if not indices.dtype.is_int:
            raise ValueError(f"indices are {indices.dtype.value}, not integers")
        if len(data.shape) != len(indices.shape):
            raise ValueError(f"indices {indices.shape} of data {data.shape}")
        for d, (have, wanted) in enumerate(zip(data.shape, indices.shape, strict=True)):
            if d != self.axis and wanted > have:
                raise ValueError(f"indices {indices.shape} reach beyond data {data.shape}")
        return TensorType(indices.shape, data.dtype)


@dataclass(frozen=True)
class GatherND(Op):
    """``data`` at the index in each row of ``indices``; the first ``batch`` axes are paired.

    Inputs are data ``[*b, *d, *r]`` and integer indices ``[*b, *i, len(d)]``; the result is
    ``[*b, *i, *r]``.  Indices are read as :class:`Gather` reads them.
    """

    batch: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, indices = inputs
        if not indices.dtype.is_int:
            raise ValueError(f"indices are {indices.dtype.value}, not integers")
        depth = self.batch + indices.shape[-1]
        if data.shape[: self.batch] != indices.shape[: self.batch] or depth > len(data.shape):
            raise ValueError(f"indices {indices.shape} of data {data.shape}")
        return TensorType(indices.shape[:-1] + data.shape[depth:], data.dtype)
