"""Which instruction of a warp multiplies an operator's factors, and along which axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ansorpy.ir.affine import linear
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Axis, Expr, Load
from ansorpy.ir.fragments import fragment_shape
from ansorpy.ir.intrinsics import MATRIX_LOADS, WARP_PRODUCTS, Intrinsic
from ansorpy.ir.tensor import ComputeOp, Tensor
from ansorpy.schedule.stage import Stage
from ansorpy.schedule.warp_products import axes_in, factors
from ansorpy.target import Target

__all__ = [
    "ROUNDED", "WarpChoice", "best_choice", "has_warp_products", "matrix_dims", "matrix_load",
    "may_round",
]  # fmt: skip

ROUNDED = "tf32"
"""Attribute: True where float32 factors may be rounded to TF32."""

FIRST_WITH_THEM = 80
"""The first architecture with all of these instructions (PTX ISA, ``mma``)."""


@dataclass(frozen=True)
class WarpChoice:
    """An instruction and the axes it runs over.

    ``waste`` is how many times the operator's products it computes in whole fragments.
    """

    by: Intrinsic
    rows: Axis
    columns: Axis
    depth: Axis
    waste: float


def has_warp_products(target: Target) -> bool:
    """True for GPUs with the instructions."""
    return target.capability >= FIRST_WITH_THEM


def best_choice(op: Tensor) -> WarpChoice | None:
    """The axes that fill fragments best; of equal ones, those along which factors are stored, then
    columns that results are stored along, then the longest rows and depth.

    None for what no instruction multiplies.
    """
    if not isinstance(op, ComputeOp):
        return None

    def order(choice: WarpChoice) -> tuple[float, ...]:
        apart = sum(not _is_along(e, choice) for e in factors(op) or ())
        across = choice.columns is not op.axes[-1]
        return choice.waste, apart, across, -choice.depth.extent * choice.rows.extent

    return min(_choices(op), key=order, default=None)


def _is_along(factor: Expr, choice: WarpChoice) -> bool:
    """True when a factor's two axes of *choice* are of the last two dimensions it is read in."""
    if not isinstance(factor, Load):
        return False
    wanted = axes_in(factor) & {choice.rows, choice.columns, choice.depth}
    return wanted <= {axis for index in factor.indices[-2:] for axis in axes_in(index)}


def may_round(op: ComputeOp, choice: WarpChoice) -> bool:
    """True unless the instruction would round factors that must stay as they are."""
    return choice.by.types[1] is not DType.FLOAT32 or bool(op.attributes.get(ROUNDED))


def matrix_dims(operand: Stage) -> tuple[int, ...]:
    """The dimensions of what *operand* copies that its rows and columns move in; () where it
    computes something."""
    load, axes = operand.compute.body, set(operand.compute.axes[-2:])
    if not isinstance(load, Load):
        return ()
    return tuple(d for d, index in enumerate(load.indices) if axes_in(index) & axes)


def matrix_load(operand: Stage, depth: str) -> Intrinsic | None:
    """What loads fragments of *operand* from a copy of its source in shared memory.

    None where lanes must do it: the operand computes something, or its rows and columns are not
    two dimensions of what it reads, the last among them, as many along *depth* as there.
    """
    load, axes = operand.compute.body, operand.compute.axes[-2:]
    dims = matrix_dims(operand)
    if not isinstance(load, Load) or len(dims) != 2 or operand.fragment is None:
        return None
    row, last = (load.indices[d] for d in dims)
    if dims[1] != len(load.indices) - 1 or last not in axes:
        return None
    across = axes[0] if last is axes[1] else axes[1]
    if axes_in(row) & set(axes) != {across} or linear(row).terms[across] != 1:
        return None
    there = {load.indices[d]: load.source.shape[d] for d in dims}
    if any(a.name == depth and there.get(a) != a.extent for a in axes):
        return None
    fragment = tuple(filter(None, operand.fragment))
    for by in MATRIX_LOADS:
        source = by.pattern.body
        assert isinstance(source, Load), by.name
        near = axes[by.pattern.axes.index(source.indices[-1])]
        if by.fragments[0] == fragment and by.types[0] is operand.op.dtype and near is last:
            return by
    return None


def _choices(op: ComputeOp) -> Iterator[WarpChoice]:
    found = factors(op)
    for left, right in (found, found[::-1]) if found is not None else ():
        by = _instruction(op, left.dtype, right.dtype)
        if by is None:
            continue
        m, n = fragment_shape(by.fragments[0])
        k = fragment_shape(by.fragments[1])[1]
        both = axes_in(left) & axes_in(right)
        for rows in _of_one(op.axes, left, right):
            for columns in _of_one(op.axes, right, left):
                for depth in (axis for axis in op.reduce_axes if axis in both):
                    waste = _filled(rows, m) * _filled(columns, n) * _filled(depth, k)
                    yield WarpChoice(by, rows, columns, depth, waste)


def _instruction(op: ComputeOp, left: DType, right: DType) -> Intrinsic | None:
    """What multiplies such values, and adds them up as *op* does or more exactly."""
    for by in WARP_PRODUCTS:
        total = by.types[0]
        if by.types[1:] == (left, right) and op.dtype.is_float is total.is_float:
            return by
    return None


def _of_one(axes: Iterable[Axis], one: Expr, other: Expr) -> list[Axis]:
    mine = axes_in(one) - axes_in(other)
    return [axis for axis in axes if axis in mine]


def _filled(axis: Axis, whole: int) -> float:
    return -(-axis.extent // whole) * whole / axis.extent
