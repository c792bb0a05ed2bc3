"""Operators on some of their rows: which ones compute each row from the operands' same row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ansorpy.graph.op import (
    ArgReduce,
    Attention,
    Concat,
    Conv,
    ConvTranspose,
    CumSum,
    Expand,
    Gather,
    GatherElements,
    GatherND,
    LayerNorm,
    Lrn,
    MatMul,
    Op,
    Pad,
    Pattern,
    Pool,
    Reduce,
    Repeat,
    Resample,
    Reshape,
    Shape,
    Shuffle,
    Slice,
    Softmax,
    Transpose,
)

__all__ = ["Operand", "on_rows"]


@dataclass(frozen=True)
class Operand:
    """An operand: its whole shape, and whether it is *cut* into pieces along the first axis."""

    shape: Shape
    cut: bool


def on_rows(op: Op, operands: Sequence[Operand], shape: Shape, pieces: int) -> Op | None:
    """*op* for one of *pieces* equal parts of the rows of a result of *shape*.

    A row is all elements with one index on the first axis.  None where a part of the result's rows
    needs more than the same part of the operands that are cut.
    """
    if not shape or any(o.cut and o.shape[0] % pieces for o in operands) or shape[0] % pieces:
        return None
    match op:
        case MatMul(perm) if perm[:1] in ((), (0,)):
            return op if _is_product_of_rows(operands, len(shape)) else None
        case Attention(perm=perm) if perm[0] == 0:
            q, k, v, *masks = operands
            is_cut = all(o.cut and len(o.shape) == len(shape) > 2 for o in (q, k, v))
            return op if is_cut and _broadcasts(masks, shape) else None
        case Gather(axis):
            data, indices = operands
            is_table = axis == 0 and indices.cut and not data.cut
            is_choice = axis > 0 and data.cut and not indices.cut
            return op if is_table or is_choice else None
        case GatherElements(axis):
            is_paired = all(o.cut and o.shape[0] == shape[0] for o in operands)
            return op if axis > 0 and is_paired else None
        case GatherND(batch):
            return op if batch > 0 and all(o.cut for o in operands) else None
        case Concat(axis):
            return op if axis > 0 and all(o.cut for o in operands) else None
        case _ if op.pattern is Pattern.ELEMENTWISE:
            return op if _broadcasts(operands, shape) else None
        case _ if operands[0].cut and not any(o.cut for o in operands[1:]):
            return _of_one(op, operands[0].shape, shape[0] // pieces)
    return None


def _is_product_of_rows(operands: Sequence[Operand], rank: int) -> bool:
    """True when the first axis of a product is that of exactly the operands that are cut."""
    a, b = operands
    if a.cut and not b.cut and len(b.shape) == 2:
        return len(a.shape) == rank
    return rank > 2 and all(_spans(o, rank) for o in operands)


def _broadcasts(operands: Sequence[Operand], shape: Shape) -> bool:
    """True when operands that are cut have all rows of *shape*, and others one for all rows."""
    return all(_spans(o, len(shape)) for o in operands) and all(
        o.shape[0] == shape[0] for o in operands if o.cut
    )


def _spans(operand: Operand, rank: int) -> bool:
    if operand.cut:
        return len(operand.shape) == rank
    return len(operand.shape) < rank or operand.shape[0] == 1


def _of_one(op: Op, before: Shape, rows: int) -> Op | None:
    """*op* on one cut operand, whose whole shape is *before*, for *rows* rows of its result."""
    match op:
        case Reshape(shape):
            return Reshape((rows, *shape[1:]))
        case Expand(shape) if before[0] == shape[0] and len(before) == len(shape):
            return Expand((rows, *shape[1:]))
        case Slice(starts, sizes, steps) if (starts[0], sizes[0], steps[0]) == (0, before[0], 1):
            return replace(op, sizes=(rows, *sizes[1:]))
    return op if _keeps_rows(op) else None


def _keeps_rows(op: Op) -> bool:
    """True when *op* works only along axes other than the first."""
    match op:
        case Conv() | ConvTranspose() | Pool():
            return True
        case Lrn(axis=axis) | CumSum(axis=axis) | ArgReduce(axis=axis):
            return axis > 0
        case Resample(axis=axis) | Shuffle(axis=axis):
            return axis > 0
        case Softmax(axes=axes) | LayerNorm(axes=axes) | Reduce(axes=axes):
            return 0 not in axes
        case Transpose(perm):
            return perm[0] == 0
        case Pad(begin, end):
            return begin[0] == end[0] == 0
        case Repeat(times):
            return times[0] == 1
    return False
