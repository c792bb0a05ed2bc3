"""What random operators do with single elements, and the data of random tests, by element type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ansorpy.ir import builders as b
from ansorpy.ir.dag import ComputeDAG
from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import Call, Const, Expr, Function

__all__ = [
    "TYPES", "Elements", "accumulated", "number", "random_type", "random_values",
    "reducers",
]  # fmt: skip

T = TypeVar("T")
Unary = Callable[[Expr], Expr]
Two = Callable[[Expr, Expr], Expr]

TYPES = (*DType, *(DType.FLOAT32,) * 8, *(DType.FLOAT16,) * 3, *(DType.INT8, DType.UINT8))
"""All element types, those of networks more often."""


def random_type(rng: np.random.Generator, types: Sequence[DType]) -> DType:
    """One of *types*."""
    return types[int(rng.integers(len(types)))]


def random_values(dag: ComputeDAG, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Standard normal floats, small integers and any booleans, by placeholder name."""
    return {a.name: _values(a.shape, a.dtype, rng) for a in dag.args}


def _values(shape: Sequence[int], dtype: DType, rng: np.random.Generator) -> np.ndarray:
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    low, high = dtype.limits
    return rng.integers(max(low, -100), min(high, 100) + 1, shape).astype(dtype.numpy)


def number(value: float, dtype: DType) -> Const:
    """*value* as a constant; cut to an integer or a boolean if *dtype* is one."""
    if dtype is DType.BOOL:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else int(value), dtype)


def accumulated(dtype: DType) -> DType:
    """The type in which networks add up products of *dtype*."""
    return DType.INT32 if dtype.bits == 8 else dtype.of_sums


def reducers(dtype: DType) -> Sequence[Callable[..., Expr]]:
    """The reductions of *dtype* that keep values small."""
    if dtype is DType.BOOL:
        return b.max, b.min
    return (b.sum, b.max, b.min) if dtype.is_float else (b.sum, b.max, b.min, b.prod)


class Elements:
    """Random expressions of one or two elements; those of floats are continuous.

    Rounding errors therefore never decide between two different values.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, of: Sequence[T]) -> T:
        return of[int(self.rng.integers(len(of)))]

    def unary(self, dtype: DType) -> Unary:
        if dtype is DType.BOOL:
            return lambda v: Call(Function.NOT, (v,))
        return self.pick(_OF_FLOATS if dtype.is_float else _OF_INTEGERS)

    def slight(self, dtype: DType) -> Unary:
        """A cheap change that keeps values small."""
        if dtype is DType.BOOL:
            return lambda v: v
        by = self.pick((1, 2)) if dtype.is_int else self.pick((0.5, 1.0, 2.0))
        return self.pick((lambda v: v * number(by, dtype), lambda v: v + number(by, dtype)))

    def binary(self, dtype: DType) -> Two:
        if dtype is DType.BOOL:
            return self.pick((lambda x, y: x & y, lambda x, y: x | y))
        every: list[Two] = [
            lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, b.maximum, b.minimum,
        ]  # fmt: skip
        if dtype.is_int:
            every += [lambda x, y: x // y, lambda x, y: x % y, lambda x, y: x / y]
        return self.pick(every)

    def converted(self, source: DType, to: DType, *, exact: bool) -> Unary | None:
        """A conversion; None from floats that are not *exact* to other types than floats.

        Integers become floats only if the float holds them.
        """
        if to is DType.BOOL and (exact or not source.is_float) and source is not DType.BOOL:
            return lambda v: v > number(0.25 if source.is_float else 3, source)
        if source.is_float and not to.is_float:
            step = self.pick((b.floor, b.ceil, b.round, lambda v: v))
            return (lambda v: step(v * 4.0).astype(to)) if exact else None
        if source.is_int and to.is_float:
            return lambda v: v.astype("int8").astype(to) * number(1 / 64, to)
        return lambda v: v.astype(to)


_OF_FLOATS: Sequence[Unary] = (
    lambda v: b.maximum(v, 0.0),
    lambda v: b.maximum(v, v * 0.1),
    lambda v: b.minimum(b.maximum(v, -0.75), 1.5),
    b.tanh, b.sigmoid, b.erf, b.sin, b.cos, b.abs,
    lambda v: b.exp(b.minimum(v, 1.0)),
    lambda v: b.log(b.abs(v) + 0.5),
    lambda v: b.sqrt(b.abs(v) + 0.25),
    lambda v: b.rsqrt(v * v + 1.0),
    lambda v: v * b.sigmoid(v),
    lambda v: 1.0 / (b.abs(v) + 1.0),
    lambda v: b.tanh(v).astype("float64").astype(v.dtype),
)  # fmt: skip
_OF_INTEGERS: Sequence[Unary] = (
    lambda v: v + 3,
    lambda v: v * 5,
    lambda v: -v,
    b.abs,
    lambda v: b.minimum(b.maximum(v, 2), 50),
    lambda v: v // 3,
    lambda v: v % 7,
    lambda v: v / 3,
    lambda v: b.select(v > 1, v, v * 2),
    lambda v: v.astype("int32").astype(v.dtype),
)
