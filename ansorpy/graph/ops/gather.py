"""Gathers elements and rows of a table at indices given as data, as in embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ansorpy.graph.ops.base import Op, Pattern, Rows, Shape, TensorType, types_of
from ansorpy.graph.ops.indexing import wrapped_index
from ansorpy.graph.ops.names import Names
from ansorpy.ir.expr import Expr
from ansorpy.ir.extents import most
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["Gather", "GatherElements", "GatherND"]


@dataclass(frozen=True)
class Gather(Op):
    """``data`` at ``indices`` along ``axis``, which is replaced by the axes of ``indices``.

    Inputs are data and integer indices.  Negative indices count from the end; those out of range
    wrap around, so that no element outside the data is ever read.
    """

    axis: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, indices = inputs
        _check_integers(indices)
        shape: Shape = data.shape[: self.axis] + indices.shape + data.shape[self.axis + 1 :]
        return TensorType(shape, data.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[.., i.., ..] = data[.., indices[i..] % extent, ..]``.

        The remainder is that of floor division, so a negative index counts from the end.
        """
        data, indices = inputs
        before, places = self.axis, indices.ndim
        extent = data.shape[before]

        def body(*i: Expr) -> Expr:
            index = wrapped_index(indices[i[before : before + places]], extent)
            return data[(*i[:before], index, *i[before + places :])]

        return compute(self.infer(types_of(inputs)).shape, body, name=names.fresh("gather"))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        data, indices = operands
        is_table = self.axis == 0 and indices.cut and not data.cut
        is_choice = self.axis > 0 and data.cut and not indices.cut
        return is_table or is_choice


@dataclass(frozen=True)
class GatherElements(Op):
    """Each element by its own index along ``axis``: ``data[i, indices[i, j, k], k]``.

    Inputs are data and integer indices of the same rank, interpreted as in :class:`Gather`.
    """

    axis: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, indices = inputs
        _check_integers(indices)
        if len(data.shape) != len(indices.shape):
            raise ValueError(f"indices {indices.shape} of data {data.shape}")
        for d, (have, wanted) in enumerate(zip(data.shape, indices.shape, strict=True)):
            if d != self.axis and most(wanted - have) > 0:
                raise ValueError(f"indices {indices.shape} reach beyond data {data.shape}")
        return TensorType(indices.shape, data.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[i] = data[i with indices[i] % extent in place of i[axis]]``."""
        data, indices = inputs
        axis, extent = self.axis, data.shape[self.axis]

        def body(*i: Expr) -> Expr:
            return data[(*i[:axis], wrapped_index(indices[i], extent), *i[axis + 1 :])]

        return compute(indices.shape, body, name=names.fresh("gather"))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        is_paired = all(o.cut and o.shape[0] == shape[0] for o in operands)
        return self.axis > 0 and is_paired


@dataclass(frozen=True)
class GatherND(Op):
    """``data`` at the index in each row of ``indices``; the first ``batch`` axes are paired.

    Inputs are data ``[*b, *d, *r]`` and integer indices ``[*b, *i, len(d)]``; the result is
    ``[*b, *i, *r]``.  Indices are interpreted as in :class:`Gather`.
    """

    batch: int
    pattern: ClassVar[Pattern] = Pattern.INJECTIVE

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        data, indices = inputs
        _check_integers(indices)
        depth = self.batch + indices.shape[-1]
        if data.shape[: self.batch] != indices.shape[: self.batch] or depth > len(data.shape):
            raise ValueError(f"indices {indices.shape} of data {data.shape}")
        return TensorType(indices.shape[:-1] + data.shape[depth:], data.dtype)

    def define(self, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
        """``out[b.., i.., r..] = data[b.., indices[b.., i.., 0] % extent, .., r..]``."""
        data, indices = inputs
        given, depth = indices.ndim - 1, indices.shape[-1]
        batch = self.batch

        def body(*i: Expr) -> Expr:
            where = [
                wrapped_index(indices[(*i[:given], n)], data.shape[batch + n]) for n in range(depth)
            ]
            return data[(*i[:batch], *where, *i[given:])]

        return compute(self.infer(types_of(inputs)).shape, body, name=names.fresh("gather"))

    def keeps_rows(self, operands: Sequence[Rows], shape: Shape) -> bool:
        return self.batch > 0 and all(o.cut for o in operands)


def _check_integers(indices: TensorType) -> None:
    if not indices.dtype.is_int:
        raise ValueError(f"indices are {indices.dtype.value}, not integers")
