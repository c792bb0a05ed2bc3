"""Rewrite sums of products as sums of products of fragments in the registers of a team of lanes.

The operators that replace such a sum, producers first::

    C[i, j] = sum_k A[i, k] * B[k, j]     -->     A.warp[i, k] = A[i, k];  B.warp[k, j] = B[k, j]
                                                  C.warp[i, j] = sum_k A.warp[i, k] * B.warp[k, j]
                                                  C[i, j] = C.warp[i, j]

Instructions of warpgroups read operands from shared memory, where they are ``A.shared``.
Operands are indexed by the axes of the sum, not by those of the tensors from which they are read,
so windows of a convolution and slices need no special treatment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansorpy.ir.analysis.affine import axes_in
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Axis,
    AxisKind,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Expr,
    Function,
    Load,
    Reduce,
    ReduceKind,
    Select,
    Var,
)
from ansorpy.ir.intrinsics import Intrinsic, operand_axes, operand_tensors
from ansorpy.ir.rewrite.rewriter import substitute
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.lowering.dag_edit import fresh_axes

__all__ = ["MmaOperands", "factors", "in_fragments"]

_TF32_STEP = 1 << 13
"""One step of TF32 in float32 bits: TF32 lacks the 13 lowest bits."""


@dataclass(frozen=True)
class MmaOperands:
    """A sum of products: its factors, and the axes that an instruction runs over.

    ``rows`` is an axis of ``left`` only, ``columns`` of ``right`` only, and ``depth`` of both.
    """

    left: Expr
    right: Expr
    rows: Axis
    columns: Axis
    depth: Axis


def factors(op: Tensor) -> tuple[Expr, Expr] | None:
    """The two factors whose products *op* sums, in the types in which they are read.

    None for other operators, and for sums in a type that cannot hold all products.
    """
    match op:
        case ComputeOp(body=Reduce(ReduceKind.SUM, Binary(BinaryOp.MUL, x, y), _)):
            pass
        case _:
            return None
    a, b = (e.x if isinstance(e, Cast) and e.type is op.dtype else e for e in (x, y))
    wide = op.dtype in (DType.FLOAT32, DType.INT32)
    alike = a.dtype is b.dtype is op.dtype and op.dtype.is_half
    return (a, b) if wide or alike else None


def in_fragments(
    op: ComputeOp, form: MmaOperands, by: Intrinsic, name: Callable[[str], str]
) -> tuple[ComputeOp, tuple[ComputeOp, ComputeOp, ComputeOp]]:
    """The replacement of *op*, and the new operators: both operands, then the sum.

    Args:
        name: Makes names for the new operators.
    """
    ends = (form.rows, form.columns, form.depth)
    runs = dict(zip((*by.pattern.axes, *by.pattern.reduce_axes), ends, strict=True))

    def operand(factor: Expr, number: int) -> _Operand:
        tensor = operand_tensors(by.pattern)[number]
        place = "warp" if by.fragments[number] else "shared"
        last = tuple(runs[axis] for axis in operand_axes(by, tensor))
        base = factor.source.name if isinstance(factor, Load) else f"{op.name}.{last[0].name}"
        return _operand(op, factor, last, tensor.dtype, name(f"{base}.{place}"))

    left, right = operand(form.left, 1), operand(form.right, 2)
    order = (*(a for a in op.axes if a not in (form.rows, form.columns)), form.rows, form.columns)
    axes = fresh_axes(order)
    reduce = fresh_axes(op.reduce_axes, AxisKind.REDUCE)
    own: dict[Var, Expr] = {
        **dict(zip(order, axes, strict=True)), **dict(zip(op.reduce_axes, reduce, strict=True)),
    }  # fmt: skip
    total = by.pattern.dtype
    read = [substitute(Load(operand, at), own).astype(total) for operand, at in (left, right)]
    body = Reduce(ReduceKind.SUM, read[0] * read[1], reduce)
    shape = tuple(axis.extent for axis in order)
    summed = ComputeOp(name(f"{op.name}.warp"), shape, axes, reduce, body, op.attrs)
    final_axes = fresh_axes(op.axes)
    back = dict(zip(op.axes, final_axes, strict=True))
    copy = Load(summed, tuple(back[axis] for axis in order)).astype(op.dtype)
    final = ComputeOp(op.name, op.shape, final_axes, (), copy)
    return final, (left[0], right[0], summed)


_Operand = tuple[ComputeOp, tuple[Axis, ...]]


def _operand(
    op: ComputeOp, factor: Expr, last: tuple[Axis, ...], wanted: DType, name: str
) -> _Operand:
    """The stage of one factor, and the axes of *op* that index it; axes of a fragment come last."""
    used = axes_in(factor)
    order = (*(a for a in (*op.axes, *op.reduce_axes) if a in used and a not in last), *last)
    axes = fresh_axes(order)
    body = substitute(factor, dict(zip(order, axes, strict=True)))
    shape = tuple(axis.extent for axis in order)
    body = _rounded(body) if wanted is DType.FLOAT32 else body
    return ComputeOp(name, shape, axes, (), body), order


def _rounded(x: Expr) -> Expr:
    """A float32 value rounded to the 19 bits of TF32, with halves rounded away from zero.

    NaN stays as it is: a GPU makes it of bits that are all 1, which a carry would turn into 0.
    """
    bits = Call(Function.BITS, (x,)) + _TF32_STEP // 2
    rounded = Call(Function.FROM_BITS, (bits // _TF32_STEP * _TF32_STEP,))
    return Select(x.not_equal(x), x, rounded)
