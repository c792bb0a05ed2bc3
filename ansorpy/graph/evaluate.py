"""Evaluation on constant arrays of the operators that the passes apply to constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansorpy.graph.op import (
    Cast,
    Concat,
    Elementwise,
    Expand,
    Fn,
    Op,
    Repeat,
    Reshape,
    Shuffle,
    Slice,
    Transpose,
)
from ansorpy.ir.interpret.numerics import convert

__all__ = ["evaluate"]

_BINARY: dict[Fn, Callable[..., Any]] = {
    Fn.ADD: np.add, Fn.SUB: np.subtract, Fn.MUL: np.multiply, Fn.MAX: np.maximum,
    Fn.MIN: np.minimum,
}  # fmt: skip


def evaluate(op: Op, inputs: Sequence[NDArray[np.generic]]) -> NDArray[np.generic] | None:
    """``op(*inputs)`` in numpy, or None for an operator that is left to the compiled network."""
    result: Any = None
    match op:
        case Concat(axis):
            result = np.concatenate(inputs, axis)
        case Cast(dtype):
            result = convert(inputs[0], dtype)
        case Elementwise(fn) if fn in _BINARY and len(inputs) == 2:
            result = _BINARY[fn](*inputs)
        case Elementwise(Fn.DIV) if inputs[0].dtype.kind == "f":
            with np.errstate(all="ignore"):  # infinite, or NaN, as in kernels
                result = np.true_divide(*inputs)
        case _:
            result = _moved(op, inputs[0])
    return None if result is None else np.asarray(result)


def _moved(op: Op, x: NDArray[np.generic]) -> Any:
    """*x* after a movement; None for any other operator."""
    match op:
        case Reshape(shape):
            return x.reshape(shape)
        case Expand(shape):
            return np.broadcast_to(x, shape)
        case Transpose(perm):
            return x.transpose(perm)
        case Shuffle(axis, factors, perm):
            return _shuffle(x, axis, factors, perm)
        case Repeat(times):
            grid = (np.arange(e * k) // k for e, k in zip(x.shape, times, strict=True))
            return x[np.ix_(*grid)]
        case Slice(starts, sizes, steps):
            grid = (s + np.arange(n) * k for s, n, k in zip(starts, sizes, steps, strict=True))
            return x[np.ix_(*grid)]
    return None


def _shuffle(
    x: NDArray[np.generic], axis: int, factors: tuple[int, ...], perm: tuple[int, ...]
) -> NDArray[np.generic]:
    split = x.reshape(*x.shape[:axis], *factors, *x.shape[axis + 1 :])
    rank = len(factors)
    order = [
        *range(axis), *(axis + p for p in perm), *range(axis + rank, split.ndim)
    ]  # fmt: skip
    return split.transpose(order).reshape(x.shape)
