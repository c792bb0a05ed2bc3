"""A fast way through sums of products with affine indices (matrix products, convolutions)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ansorpy.ir.affine import index_terms
from ansorpy.ir.expr import Axis, Binary, BinaryOp, Expr, Load, Reduce, ReduceKind
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["contract"]

Array = npt.NDArray[Any]

# Elements the windows of one operand may be copied to for the matrix product.
COPY_LIMIT = 1 << 27


def contract(op: ComputeOp, values: Mapping[Tensor, Array]) -> Array | None:
    """*op* by ``einsum`` over strided windows of its two operands, or None if it has no such form.

    Only float32 and float64 sums of a product of two loads whose indices are affine and stay
    inside; the order of summation is numpy's.
    """
    match op.body:
        case Reduce(ReduceKind.SUM, Binary(BinaryOp.MUL, Load() as a, Load() as b), _):
            pass
        case _:
            return None
    axes = (*op.axes, *op.reduce_axes)
    windows = [_window(load, axes, values) for load in (a, b)]
    if windows[0] is None or windows[1] is None:
        return None
    (left, left_axes), (right, right_axes) = windows  # type: ignore[misc]
    if {left.dtype, right.dtype} & {np.dtype(np.float32), np.dtype(np.float64)} != {left.dtype}:
        return None
    missing = [n for n in range(len(axes)) if n not in left_axes and n not in right_axes]
    space = list(range(len(op.axes)))
    # A space axis neither operand has repeats the result; a reduced one multiplies it.
    kept = [n for n in space if n not in missing]
    product = np.einsum(left, left_axes, right, right_axes, kept, optimize=True)
    scale = math.prod(axes[n].extent for n in missing if n >= len(space))
    shape = tuple(1 if n in missing else axes[n].extent for n in space)
    return np.broadcast_to((product * product.dtype.type(scale)).reshape(shape), op.shape).copy()


def _window(
    load: Load, axes: tuple[Axis, ...], values: Mapping[Tensor, Array]
) -> tuple[Array, list[int]] | None:
    """A view of the tensor with one dimension for each axis that appears, and their numbers."""
    assert isinstance(load.source, Tensor)
    array = np.ascontiguousarray(values[load.source])
    strides, start = _strides(load.indices, axes, array)
    if start is None:
        return None
    numbers = sorted(strides)
    shape = tuple(axes[n].extent for n in numbers)
    if math.prod(shape) > COPY_LIMIT:
        return None
    origin = array.reshape(-1)[start:]
    view = np.lib.stride_tricks.as_strided(
        origin, shape, tuple(strides[n] for n in numbers), writeable=False
    )
    return view, numbers


def _strides(
    indices: tuple[Expr, ...], axes: tuple[Axis, ...], array: Array
) -> tuple[dict[int, int], int | None]:
    """Bytes each axis moves by and the first element; None when not affine or not inside."""
    strides: dict[int, int] = {}
    start = 0
    for index, extent, stride in zip(indices, array.shape, array.strides, strict=True):
        terms = index_terms(index, axes)
        if terms is None:
            return {}, None
        low = terms[1] + sum(min(0, c * (a.extent - 1)) for a, c in terms[0].items())
        high = terms[1] + sum(max(0, c * (a.extent - 1)) for a, c in terms[0].items())
        if low < 0 or high >= extent:
            return {}, None
        start += terms[1] * (stride // array.itemsize)
        for axis, c in terms[0].items():
            n = axes.index(axis)
            strides[n] = strides.get(n, 0) + c * stride
    return strides, start
