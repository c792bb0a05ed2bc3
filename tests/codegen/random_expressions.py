"""Random scalar expressions over arrays of every element type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from ansorpy.ir.dtypes import DType
from ansorpy.ir.expr import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Function,
    Select,
)

__all__ = ["TYPES", "RandomExpression"]

T = TypeVar("T")
HALF = (DType.FLOAT16, DType.BFLOAT16)
FLOATS = (DType.FLOAT32, DType.FLOAT64, *HALF)
INTS = (DType.INT8, DType.UINT8, DType.INT32, DType.UINT32, DType.INT64)
TYPES = (*FLOATS, *INTS, DType.BOOL)

_SMOOTH = (Function.TANH, Function.ERF, Function.SIN, Function.EXP, Function.SQRT, Function.LOG)


class RandomExpression:
    """Expressions whose value rounding cannot change by more than rounding.

    What decides (comparisons, conversions to integers, roundings) is made of *exact* values:
    small multiples of 1/4, which float32 and float64 add and multiply without error, and 16-bit
    floats hold as they are.  *loads* are arrays of such multiples, by type.
    """

    def __init__(self, rng: np.random.Generator, loads: Mapping[DType, Expr]) -> None:
        self.rng = rng
        self.loads = loads

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]

    def value(self, dtype: DType, depth: int) -> Expr:
        """Any expression of *dtype*."""
        if depth == 0:
            return self.leaf(dtype)
        if self.rng.random() < 0.2:
            return Select(
                self.value(DType.BOOL, 1),
                self.value(dtype, depth - 1),
                self.value(dtype, depth - 1),
            )
        if dtype is DType.BOOL:
            return self.condition(depth)
        return self.real(dtype, depth) if dtype.is_float else self.integer(dtype, depth)

    def leaf(self, dtype: DType) -> Expr:
        if self.rng.random() < 0.75:
            return self.loads[dtype]
        if dtype is DType.BOOL:
            return Const(bool(self.rng.integers(2)), dtype)
        number = int(self.rng.integers(1, 8))
        return Const(number / 4 if dtype.is_float else number, dtype)

    def exact(self, dtype: DType, depth: int) -> Expr:
        """A float of *dtype*, at most 16, that every way of computing it gives alike."""
        if depth == 0:
            return self.leaf(dtype)
        kinds: list[BinaryOp] = [BinaryOp.MIN, BinaryOp.MAX]
        if dtype not in HALF:
            kinds += [BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL]
        a, b = self.exact(dtype, depth - 1), self.exact(dtype, depth - 1)
        if self.rng.random() < 0.3:
            return Call(self.pick((Function.NEG, Function.ABS)), (a,))
        return Binary(self.pick(kinds), a, b)

    def condition(self, depth: int) -> Expr:
        match int(self.rng.integers(4)):
            case 0:
                sides = self.value(DType.BOOL, depth - 1), self.value(DType.BOOL, depth - 1)
                return Binary(self.pick((BinaryOp.AND, BinaryOp.OR)), *sides)
            case 1:
                return Call(Function.NOT, (self.value(DType.BOOL, depth - 1),))
            case 2:
                return Cast(DType.BOOL, self.decided(self.pick((*FLOATS, *INTS)), depth - 1))
            case _:
                dtype = self.pick((*FLOATS, *INTS))
                a, b = self.decided(dtype, depth - 1), self.decided(dtype, depth - 1)
                return Compare(self.pick(list(CompareOp)), a, b)

    def decided(self, dtype: DType, depth: int) -> Expr:
        return self.exact(dtype, min(depth, 2)) if dtype.is_float else self.value(dtype, depth)

    def integer(self, dtype: DType, depth: int) -> Expr:
        a = self.value(dtype, depth - 1)
        match int(self.rng.integers(5)):
            case 0:
                divisor = Const(int(self.rng.integers(2, 9)), dtype)
                return Binary(self.pick((BinaryOp.FLOORDIV, BinaryOp.FLOORMOD)), a, divisor)
            case 1:
                return self.from_float(dtype, depth)
            case 2:
                return Cast(dtype, self.value(self.pick((*INTS, DType.BOOL)), depth - 1))
            case 3:
                return Call(self.pick((Function.NEG, Function.ABS)), (a,))
            case _:
                kinds = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX)
                return Binary(self.pick(kinds), a, self.value(dtype, depth - 1))

    def from_float(self, dtype: DType, depth: int) -> Expr:
        """A float cut to an integer, within the range every integer type has."""
        source = self.pick(FLOATS)
        x = self.exact(source, min(depth - 1, 2))
        low = -100.0 if dtype.is_signed else 0.0
        x = Binary(BinaryOp.MAX, x, Const(low, source))
        return Cast(dtype, Binary(BinaryOp.MIN, x, Const(100.0, source)))

    def real(self, dtype: DType, depth: int) -> Expr:
        choices: tuple[Callable[[DType, int], Expr], ...] = (
            self.rounded, self.converted, self.smooth, self.quotient, self.sum,
        )  # fmt: skip
        return self.pick(choices)(dtype, depth)

    def rounded(self, dtype: DType, depth: int) -> Expr:
        fn = self.pick((Function.FLOOR, Function.CEIL, Function.ROUND))
        return Call(fn, (self.exact(dtype, min(depth - 1, 2)),))

    def converted(self, dtype: DType, depth: int) -> Expr:
        """Another type's value; integers are first brought into int8, which all floats hold."""
        source = self.pick(TYPES)
        x = self.value(source, depth - 1)
        if source.is_int and source is not DType.INT8:
            x = Cast(DType.INT8, x)
        return Cast(dtype, x)

    def smooth(self, dtype: DType, depth: int) -> Expr:
        """A function at |x| + 1/4 within 4, where none of them is steep."""
        size = Call(Function.ABS, (self.value(dtype, depth - 1),)) + 0.25
        return Call(self.pick(_SMOOTH), (Binary(BinaryOp.MIN, size, Const(4.0, dtype)),))

    def quotient(self, dtype: DType, depth: int) -> Expr:
        below = Call(Function.ABS, (self.value(dtype, depth - 1),)) + 1.0
        return self.value(dtype, depth - 1) / below

    def sum(self, dtype: DType, depth: int) -> Expr:
        kinds = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MAX, BinaryOp.MIN)
        return Binary(self.pick(kinds), self.value(dtype, depth - 1), self.value(dtype, depth - 1))
