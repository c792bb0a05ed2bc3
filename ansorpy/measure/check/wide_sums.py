"""Rewrite long sums to use float64, so that the reference does not lose small terms."""

from __future__ import annotations

from math import prod

from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Cast, Expr, Reduce, ReduceKind
from ansorpy.ir.tensor import ComputeOp, Tensor, compute
from ansorpy.schedule.lowering.dag_edit import replace_ops

__all__ = ["wide_sums"]

LONG_TERMS = 1 << 16
"""Shorter float32 sums stay well within a check's tolerance when added one term at a time.

Measured: 4 M squares of standard normals added in order fall 0.2 % short of their sum, because most
of them are below half an ulp of the partial sum they are added to.
"""


def wide_sums(dag: ComputeDAG, terms: int = LONG_TERMS) -> ComputeDAG:
    """Rewrite *dag* so that each floating-point sum of at least *terms* terms uses float64.

        C[i] = sum(A[i, k])   -->   C.wide[i] = sum(float64(A[i, k]))
                                    C[i] = float32(C.wide[i])

    Arguments and outputs keep their names and types; a definition without such sums is returned
    unchanged.
    """
    new: dict[Tensor, ComputeOp] = {
        op: _widened(op, op.body)
        for op in dag.computes
        if isinstance(op.body, Reduce) and _is_long(op, op.body, terms)
    }
    return replace_ops(dag, new)[0] if new else dag


def _is_long(op: ComputeOp, body: Reduce, terms: int) -> bool:
    is_narrow = op.dtype.is_float and op.dtype is not DType.FLOAT64
    long = prod(axis.extent for axis in op.reduce_axes) >= terms
    return body.kind is ReduceKind.SUM and is_narrow and long


def _widened(op: ComputeOp, body: Reduce) -> ComputeOp:
    terms = Cast(DType.FLOAT64, body.source)
    total = Reduce(ReduceKind.SUM, terms, body.axes)
    wide = ComputeOp(f"{op.name}.wide", op.shape, op.axes, op.reduce_axes, total, op.attrs)

    def rounded(*index: Expr) -> Expr:
        return Cast(op.dtype, wide[index])

    return compute(op.shape, rounded, name=op.name, names=[axis.name for axis in op.axes])
