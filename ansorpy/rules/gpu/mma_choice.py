"""Choose the ``mma.sync`` or ``wgmma`` instruction for an operator's products, and its axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ansorpy.ir.analysis.affine import axes_in, linear
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr, Load, walk
from ansorpy.ir.fragments import fragment_shape
from ansorpy.ir.intrinsics import (
    LDMATRIX,
    MMA_SYNC,
    WGMMA,
    Intrinsic,
    operand_axes,
    operand_tensors,
)
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.lowering.gpu.mma import factors
from ansorpy.schedule.stage import Stage
from ansorpy.target import Target

__all__ = [
    "WORTH",
    "MmaChoice",
    "best_choice",
    "has_mma_sync",
    "has_wgmma",
    "matrix_dims",
    "matrix_load",
    "may_round",
    "nearest_axis",
    "reason_against",
    "warp_choice",
    "wgmma_choices",
]  # fmt: skip

FIRST_WITH_MMA_SYNC = 80
"""The first architecture with all of these instructions (PTX ISA, ``mma``)."""

WGMMA_ARCHITECTURE = "sm_90a"
"""The only architecture with warpgroup products (PTX ISA, ``wgmma``)."""


_TURNED_BITS = 16
"""Bits of the elements that warpgroup instructions transpose (PTX ISA, ``wgmma``)."""

WORTH = 2.0
"""Speedup of warpgroup over warp instructions (NVIDIA, "H100 Tensor Core GPU Architecture").

Warpgroup instructions whose waste exceeds that of warp instructions by a larger factor are not
used.
"""

_NEAR_BEST = 1.1
"""Widths whose waste is at most this factor times that of the best width are considered."""

_WIDTHS = 2
"""Number of these widths that are tried, widest first."""


@dataclass(frozen=True)
class MmaChoice:
    """An instruction and the axes it runs over.

    ``waste`` is the number of products computed in whole fragments divided by the operator's.
    """

    by: Intrinsic
    rows: Axis
    columns: Axis
    depth: Axis
    waste: float


def has_mma_sync(target: Target) -> bool:
    """True for GPUs with matrix products of warps (PTX ISA, ``mma.sync``)."""
    return target.capability >= FIRST_WITH_MMA_SYNC


def has_wgmma(target: Target) -> bool:
    """True for GPUs with matrix products of warpgroups (PTX ISA, ``wgmma``)."""
    return target.cpu == WGMMA_ARCHITECTURE


def best_choice(op: Tensor) -> MmaChoice | None:
    """The instruction and axes that fill fragments of warps best; None if no instruction fits.

    Among equals, axes in the last two dimensions of the factors are preferred, then columns along
    which results are stored, then the longest rows and depth.
    """
    return _best(op, MMA_SYNC)


def warp_choice(
    op: Tensor, rows: str, columns: str, among: Sequence[Intrinsic] = MMA_SYNC
) -> MmaChoice | None:
    """As :func:`best_choice`, with the axes of rows and columns given by name.

    Among equals, instructions with more columns are preferred.
    """
    if not isinstance(op, ComputeOp):
        return None
    found = (c for c in _choices(op, among) if (c.rows.name, c.columns.name) == (rows, columns))
    return min(found, key=lambda choice: (choice.waste, -choice.by.pattern.shape[1]), default=None)


def wgmma_choices(op: Tensor) -> list[MmaChoice]:
    """The best axes for some widths of warpgroup instructions, widest first; empty if wasteful."""
    mma_sync = best_choice(op)
    if mma_sync is None:
        return []
    widths = dict.fromkeys(by.pattern.shape[1] for by in WGMMA)
    found = [_best(op, [by for by in WGMMA if by.pattern.shape[1] == n]) for n in widths]
    some = [choice for choice in found if choice is not None]
    least = min((choice.waste for choice in some), default=0.0)
    most = min(least * _NEAR_BEST, mma_sync.waste * WORTH)
    return [choice for choice in reversed(some) if choice.waste <= most][:_WIDTHS]


def _best(op: Tensor, among: Sequence[Intrinsic]) -> MmaChoice | None:
    if not isinstance(op, ComputeOp):
        return None

    def order(choice: MmaChoice) -> tuple[float, ...]:
        apart = sum(not _is_along(e, choice) for e in factors(op) or ())
        across = choice.columns is not op.axes[-1]
        return choice.waste, apart, across, -choice.depth.extent * choice.rows.extent

    return min(_choices(op, among), key=order, default=None)


def _is_along(factor: Expr, choice: MmaChoice) -> bool:
    """Whether the axes of *choice* in *factor* all index its last two dimensions."""
    if not isinstance(factor, Load):
        return False
    wanted = axes_in(factor) & {choice.rows, choice.columns, choice.depth}
    return wanted <= {axis for index in factor.indices[-2:] for axis in axes_in(index)}


def may_round(op: ComputeOp, choice: MmaChoice) -> bool:
    """False if the instruction would round factors that must stay exact."""
    return choice.by.types[1] is not DType.FLOAT32 or op.attrs.rounds_to_tf32


def reason_against(op: ComputeOp, choice: MmaChoice, most_waste: float) -> str | None:
    """Why the products of *op* should not be computed by *choice*; None if nothing speaks against.

    Padding may multiply the work by *most_waste*.
    """
    if not may_round(op, choice):
        return "its factors are float32, and may not be rounded"
    if choice.waste > most_waste:
        return f"padding to whole fragments takes {choice.waste:.0f} times the work"
    return None


def matrix_dims(operand: Stage) -> tuple[int, ...]:
    """The dimensions of its source that *operand*'s rows and columns index; () if not a copy."""
    load, axes = operand.compute.body, set(operand.compute.axes[-2:])
    if not isinstance(load, Load):
        return ()
    return tuple(d for d, index in enumerate(load.indices) if axes_in(index) & axes)


def matrix_load(
    operand: Stage, depth: str, end: int | None = None, *, of_part: bool = False
) -> Intrinsic | None:
    """The instruction that loads fragments of *operand* from a shared-memory copy of its source.

    Dimension *end* of the source (default: the last) is contiguous in the copy.  None if lanes must
    load them: the operand computes something, its rows and columns are not two dimensions of its
    source (one of them *end*), or a fragment may reach beyond the end of *depth* to elements of its
    source that are not zero.  If the sum is *of_part* of a reduction, steps of *depth* start
    anywhere in that dimension, and tiles of them must divide it.
    """
    load, axes = operand.compute.body, operand.compute.axes[-2:]
    dims = matrix_dims(operand)
    if not isinstance(load, Load) or len(dims) != 2 or operand.fragment is None:
        return None
    end = len(load.indices) - 1 if end is None else end
    if end not in dims:
        return None
    dims = (dims[1 - dims.index(end)], end)
    rows, columns = (_alone_in(load.indices[d], axes) for d in dims)
    if rows is None or columns is None or rows is columns:
        return None
    fragment = tuple(filter(None, operand.fragment))
    whole = dict(zip(axes, fragment_shape(fragment), strict=True))
    for d, axis in zip(dims, (rows, columns), strict=True):
        index, size = load.indices[d], load.source.shape[d]
        is_part = of_part and axis.name == depth and axis.extent % whole[axis] == 0
        if axis.name == depth and not is_part and (index is not axis or size != axis.extent):
            return None
        if axis is columns and index is not axis and not is_part:
            return None
    for by in LDMATRIX:
        source = by.pattern.body
        assert isinstance(source, Load), by.name
        near = axes[by.pattern.axes.index(source.indices[-1])]
        if by.fragments[0] == fragment and by.types[0] is operand.op.dtype and near is columns:
            return by
    return None


def _alone_in(index: Expr, axes: Sequence[Axis]) -> Axis | None:
    """The only axis of *axes* that moves *index*, if by one element a step."""
    steps = linear(index).terms
    moving = axes_in(index) & set(axes)
    return next((axis for axis in moving if steps.get(axis) == 1 and len(moving) == 1), None)


def _choices(op: ComputeOp, among: Sequence[Intrinsic]) -> Iterator[MmaChoice]:
    found = factors(op)
    for left, right in (found, found[::-1]) if found is not None else ():
        both = axes_in(left) & axes_in(right)
        depths = [axis for axis in op.reduce_axes if axis in both]
        ends = list(product(_of_one(op.axes, left, right), _of_one(op.axes, right, left), depths))
        for by in (by for by in among if _multiplies(by, op, left.dtype, right.dtype)):
            sizes = [axis.extent for axis in (*by.pattern.axes, *by.pattern.reduce_axes)]
            for axes in ends:
                waste = prod(_filled(axis, n) for axis, n in zip(axes, sizes, strict=True))
                choice = MmaChoice(by, *axes, waste)
                if _lies_so(choice, left, right):
                    yield choice


def _multiplies(by: Intrinsic, op: ComputeOp, left: DType, right: DType) -> bool:
    """Whether *by* multiplies these types and accumulates at least as exactly as *op* does."""
    return by.types[1:] == (left, right) and op.dtype.is_float is by.types[0].is_float


def _lies_so(choice: MmaChoice, left: Expr, right: Expr) -> bool:
    """True when factors are contiguous along the same axes as operands in shared memory.

    Copies then use vectors.  A factor that is contiguous along no axis must be stored along the
    reduction.  Only 16-bit operands may be stored across it: factors of other types that are
    contiguous so are transposed on their way into shared memory.
    """
    by = choice.by
    ends = (choice.rows, choice.columns, choice.depth)
    axes = dict(zip((*by.pattern.axes, *by.pattern.reduce_axes), ends, strict=True))
    operands = zip(operand_tensors(by.pattern)[1:], by.fragments[1:], (left, right), strict=True)
    for tensor, fragment, factor in operands:
        mine = [axes[axis] for axis in operand_axes(by, tensor)]
        may_turn = tensor.dtype.bits == _TURNED_BITS
        if not fragment and may_turn and mine[-1] is not nearest_axis(factor, mine, choice.depth):
            return False
    return True


def nearest_axis(factor: Expr, among: Sequence[Axis], otherwise: Axis) -> Axis:
    """The axis of *among* along which *factor* reads contiguous elements, else *otherwise*."""
    for e in walk(factor):
        if isinstance(e, Load) and e.indices:
            steps = linear(e.indices[-1]).terms
            return next((axis for axis in among if steps.get(axis) == 1), otherwise)
    return otherwise


def _of_one(axes: Iterable[Axis], one: Expr, other: Expr) -> list[Axis]:
    mine = axes_in(one) - axes_in(other)
    return [axis for axis in axes if axis in mine]


def _filled(axis: Axis, whole: int) -> float:
    return -(-axis.extent // whole) * whole / axis.extent
