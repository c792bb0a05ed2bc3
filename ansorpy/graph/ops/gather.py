"""Rows of a table at indices that are data: embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import Gather
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["gather"]


def gather(op: Gather, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[.., i.., ..] = data[.., indices[i..] % extent, ..]``.

    The remainder is that of floor division: a negative index counts from the end.
    """
    data, indices = inputs
    before, places = op.axis, indices.ndim
    extent = data.shape[op.axis]
    shape = (*data.shape[:before], *indices.shape, *data.shape[before + 1 :])

    def body(*i: Expr) -> Expr:
        index = indices[i[before : before + places]].astype(DType.INT64) % extent
        return data[(*i[:before], index, *i[before + places :])]

    return compute(
        shape, body, name=names.fresh("gather"), names=tuple(f"i{d}" for d in range(len(shape)))
    )
