"""Elements and rows of a table at indices that are data, as in embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from ansorpy.graph.op import Gather, GatherElements, GatherND
from ansorpy.graph.ops.names import Names
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Expr
from ansorpy.ir.tensor import ComputeOp, Tensor, compute

__all__ = ["gather", "gather_elements", "gather_nd"]


def gather(op: Gather, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[.., i.., ..] = data[.., indices[i..] % extent, ..]``.

    The remainder is that of floor division, so a negative index counts from the end.
    """
    data, indices = inputs
    before, places = op.axis, indices.ndim
    extent = data.shape[op.axis]
    shape = (*data.shape[:before], *indices.shape, *data.shape[before + 1 :])

    def body(*i: Expr) -> Expr:
        index = _wrapped(indices[i[before : before + places]], extent)
        return data[(*i[:before], index, *i[before + places :])]

    return compute(
        shape, body, name=names.fresh("gather"), names=tuple(f"i{d}" for d in range(len(shape)))
    )


def gather_elements(op: GatherElements, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[i] = data[i with indices[i] % extent in place of i[axis]]``."""
    data, indices = inputs
    extent = data.shape[op.axis]

    def body(*i: Expr) -> Expr:
        return data[(*i[: op.axis], _wrapped(indices[i], extent), *i[op.axis + 1 :])]

    return compute(
        indices.shape,
        body,
        name=names.fresh("gather"),
        names=tuple(f"i{d}" for d in range(indices.ndim)),
    )


def gather_nd(op: GatherND, inputs: Sequence[Tensor], names: Names) -> ComputeOp:
    """``out[b.., i.., r..] = data[b.., indices[b.., i.., 0] % extent, .., r..]``."""
    data, indices = inputs
    given, depth = indices.ndim - 1, indices.shape[-1]
    shape = (*indices.shape[:-1], *data.shape[op.batch + depth :])

    def body(*i: Expr) -> Expr:
        where = [_wrapped(indices[(*i[:given], n)], data.shape[op.batch + n]) for n in range(depth)]
        return data[(*i[: op.batch], *where, *i[given:])]

    return compute(
        shape, body, name=names.fresh("gather"), names=tuple(f"i{d}" for d in range(len(shape)))
    )


def _wrapped(index: Expr, extent: int) -> Expr:
    """*index*, counted from the end if negative; out of range it wraps around."""
    return index.astype(DType.INT64) % extent
