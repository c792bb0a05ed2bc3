"""Sums of products of 8-bit integers minus their zero points, exact in 32 bits.

If constant weights minus their zero point still fit in 8 bits, they are multiplied as 8-bit
integers, so that the instructions for 8-bit dot products apply.  The data's zero point is then
subtracted from the sums::

    sum (x - zero) * w = sum x * w - zero * sum w

Other operands are multiplied as 32-bit integers after subtracting their zero points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ansorpy.graph.emits import Emits
from ansorpy.graph.ir import Array, Integers
from ansorpy.graph.ops import NARROW, Conv, Fn, MatMul, Pad, PadMode, Shape
from ansorpy.ir.dtypes import DType, as_dtype

__all__ = ["as_bytes", "convolved", "multiplied"]


def as_bytes(at: Emits, weight: Integers) -> Array | None:
    """Constant weights minus their constant zero point, as 8-bit integers; None if impossible.

    These are the constant itself, if that has such elements.
    """
    array = at.builder.constants.get(weight.value)
    zero = weight.zero
    offset = np.zeros((), np.int8) if zero is None else at.builder.constants.get(zero)
    if array is None or offset is None:
        return None
    moved = array.astype(np.int32) - offset.astype(np.int32)
    for dtype in NARROW:
        low, high = dtype.limits
        if low <= moved.min(initial=0) and moved.max(initial=0) <= high:
            same = array.dtype == dtype.numpy and not offset.any()
            return array if same else moved.astype(dtype.numpy)
    return None


def convolved(at: Emits, op: Conv, data: Integers, weight: Integers) -> str:
    """The convolution *op* of *data* and *weight*."""
    narrow = as_bytes(at, weight)
    is_padded = any(op.pads_begin + op.pads_end)
    fill = 0 if data.zero is None else at.builder.constants.get(data.zero)
    if narrow is None or (is_padded and fill is None):
        return at.emit(op, [_minus_zero(at, data), _minus_zero(at, weight)])
    value = data.value
    if is_padded and data.zero is not None and fill is not None:
        ends = (0, 0, *op.pads_begin), (0, 0, *op.pads_end)
        value = at.emit(Pad(*ends, PadMode.CONSTANT, float(fill)), [value])
        none = (0,) * len(op.pads_begin)
        op = replace(op, pads_begin=none, pads_end=none)
    product = at.emit(op, [value, _constant(at, weight, narrow)])
    summed: Shape = tuple(range(1, narrow.ndim))
    sums = narrow.sum(axis=summed, dtype=np.int32).reshape(-1, *(1,) * (narrow.ndim - 2))
    return _corrected(at, product, data.zero, sums)


def multiplied(at: Emits, left: Integers, right: Integers) -> str:
    """The product of two matrices, or of two batches of matrices."""
    narrow = as_bytes(at, right)
    if narrow is None:
        return at.emit(MatMul(), [_minus_zero(at, left), _minus_zero(at, right)])
    product = at.emit(MatMul(), [left.value, _constant(at, right, narrow)])
    sums = narrow.sum(axis=-2, dtype=np.int32, keepdims=True)
    return _corrected(at, product, left.zero, sums)


def _constant(at: Emits, weight: Integers, narrow: Array) -> str:
    """The constant *narrow*, which :func:`as_bytes` made of *weight*."""
    if at.builder.constants[weight.value] is narrow:
        return weight.value
    return at.literal(narrow, as_dtype(narrow.dtype))


def _corrected(at: Emits, product: str, zero: str | None, sums: Array) -> str:
    """*product* of the data, minus the data's zero point *zero* times the weights' *sums*."""
    if zero is None:
        return product
    added = at.apply(Fn.MUL, at.cast(zero, DType.INT32), at.literal(sums, DType.INT32))
    return at.apply(Fn.SUB, product, added)


def _minus_zero(at: Emits, given: Integers) -> str:
    """The integers minus their zero point, as int32."""
    value = at.cast(given.value, DType.INT32)
    if given.zero is None:
        return value
    return at.apply(Fn.SUB, value, at.cast(given.zero, DType.INT32))
