"""Fast evaluation of sums of products with affine indices (matrix products, convolutions).

:func:`contract` computes all elements, :func:`contract_at` some of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ansorpy.arrays import Array, Ints
from ansorpy.ir.analysis.access import multiplied_loads
from ansorpy.ir.analysis.affine import index_terms
from ansorpy.ir.expr import Axis, Load
from ansorpy.ir.sizes import fixed, fixed_all
from ansorpy.ir.tensor import ComputeOp, Tensor

__all__ = ["contract", "contract_at"]


# Largest number of elements that the windows of one operand may be copied to for einsum.
COPY_LIMIT = 1 << 27


def contract(op: ComputeOp, values: Mapping[Tensor, Array]) -> Array | None:
    """Compute *op* by ``einsum`` over strided windows of its two operands; None if not possible.

    It must be a float32 or float64 sum of a product of two loads whose indices are affine and in
    bounds.  The order of summation is numpy's.
    """
    factors = multiplied_loads(op)
    if factors is None:
        return None
    axes = (*op.axes, *op.reduce_axes)
    windows = [_window(load, axes, values) for load in factors]
    if windows[0] is None or windows[1] is None:
        return None
    (left, left_axes), (right, right_axes) = windows  # type: ignore[misc]
    if left.dtype != right.dtype or left.dtype not in (np.float32, np.float64):
        return None
    missing = [n for n in range(len(axes)) if n not in left_axes and n not in right_axes]
    space = list(range(len(op.axes)))
    # A space axis that neither operand has repeats the result; a reduce axis multiplies it.
    kept = [n for n in space if n not in missing]
    product = np.einsum(left, left_axes, right, right_axes, kept, optimize=True)
    scale = math.prod(axes[n].extent for n in missing if n >= len(space))
    shape = tuple(1 if n in missing else axes[n].extent for n in space)
    return np.broadcast_to(
        (product * product.dtype.type(scale)).reshape(shape), fixed_all(op.shape)
    ).copy()


def contract_at(
    op: ComputeOp, indices: Sequence[Ints], read: Callable[[Tensor, Ints], Array]
) -> Array | None:
    """Some elements of *op*, in float64; None if *op* lacks the form that :func:`contract` needs.

    Args:
        indices: For each space axis, the index of each element, ``[n]``.
        read: Returns the elements of a tensor at an array of flat positions, of any shape.
    """
    factors = multiplied_loads(op) if op.dtype.is_float else None
    if factors is None:
        return None
    shape = (len(indices[0]) if indices else 1, math.prod(fixed(a.extent) for a in op.reduce_axes))
    read_out = []
    for load in factors:
        places = _places(load, op, indices)
        if places is None:
            return None
        # Elements that share all of an operand's terms, such as those of a row of A @ B, read once.
        starts, which = np.unique(places[0], return_inverse=True)
        terms = read(_tensor(load), starts[:, None] + places[1])[which]
        read_out.append(np.broadcast_to(terms, shape))
    found: Array = np.einsum("nk,nk->n", *read_out, dtype=np.float64)
    return found


def _tensor(load: Load) -> Tensor:
    assert isinstance(load.source, Tensor)
    return load.source


def _places(load: Load, op: ComputeOp, indices: Sequence[Ints]) -> tuple[Ints, Ints] | None:
    """Flat positions of *load*: each element's first, ``[n or 1]``, and the steps to all terms.

    The steps are ``[terms or 1]``.  None if an index is not affine or out of bounds.
    """
    moves, start = _flat_terms(load, (*op.axes, *op.reduce_axes))
    if start is None:
        return None
    base: Ints = np.full(1, start)
    for axis, at in zip(op.axes, indices, strict=True):
        if axis in moves:
            base = base + moves[axis] * at
    along: Ints = np.zeros(1, dtype=np.int64)
    for axis in op.reduce_axes:
        steps = moves.get(axis, 0) * np.arange(fixed(axis.extent))
        along = (along[:, None] + steps).reshape(-1)
    return base, along if any(axis in moves for axis in op.reduce_axes) else along[:1]


def _flat_terms(load: Load, axes: tuple[Axis, ...]) -> tuple[dict[Axis, int], int | None]:
    """The stride of each axis in elements, and the offset, which is None if the load is not affine
    or out of bounds."""
    moves: dict[Axis, int] = {}
    start, pitch = 0, 1
    for index, extent in zip(reversed(load.indices), reversed(_tensor(load).shape), strict=True):
        terms = index_terms(index, axes)
        if terms is None:
            return {}, None
        low = terms[1] + sum(min(0, c * (a.extent - 1)) for a, c in terms[0].items())
        high = terms[1] + sum(max(0, c * (a.extent - 1)) for a, c in terms[0].items())
        if low < 0 or high >= fixed(extent):
            return {}, None
        start += terms[1] * pitch
        for axis, c in terms[0].items():
            moves[axis] = moves.get(axis, 0) + c * pitch
        pitch *= extent
    return moves, start


def _window(
    load: Load, axes: tuple[Axis, ...], values: Mapping[Tensor, Array]
) -> tuple[Array, list[int]] | None:
    """A view of the tensor with one dimension per axis that occurs, and the axes' numbers."""
    array = np.ascontiguousarray(values[_tensor(load)])
    moves, start = _flat_terms(load, axes)
    if start is None:
        return None
    numbers = sorted(axes.index(axis) for axis in moves)
    shape = tuple(fixed(axes[n].extent) for n in numbers)
    if math.prod(shape) > COPY_LIMIT:
        return None
    origin = array.reshape(-1)[start:]
    strides = tuple(moves[axes[n]] * array.itemsize for n in numbers)
    view = np.lib.stride_tricks.as_strided(origin, shape, strides, writeable=False)
    return view, numbers
