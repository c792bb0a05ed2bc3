"""The operators of expressions and reductions: what they compute, and of which types."""

from __future__ import annotations

from enum import Enum

from ansorpy.ir.dtypes import DType

__all__ = ["BinaryOp", "CompareOp", "ReduceKind"]


class BinaryOp(Enum):
    """Arithmetic on two operands of one type; booleans have AND, OR, MIN and MAX alone.

    Integers wrap around.  DIV rounds their quotients towards zero, FLOORDIV down.  Quotients and
    remainders by 0 are 0; the least number of a type by -1 is itself, without a remainder.

    The FLOORMOD of floats is exact before it is rounded to the type, of the divisor's sign, and
    FLOORDIV is ``(a - a % b) / b`` as a whole number: both as in numpy, bit for bit.
    """

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    FLOORMOD = "%"
    MIN = "min"
    MAX = "max"
    POW = "**"
    AND = "and"
    OR = "or"

    def accepts(self, operand: DType) -> bool:
        """True when the operator is defined on values of type *operand*."""
        if operand is DType.BOOL:
            return self in _OF_BOOLEANS
        return self not in (BinaryOp.AND, BinaryOp.OR)


_OF_BOOLEANS = (BinaryOp.AND, BinaryOp.OR, BinaryOp.MIN, BinaryOp.MAX)


class CompareOp(Enum):
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="


class ReduceKind(Enum):
    """How a reduction combines values; ``identity`` is its neutral element."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"

    def identity(self, dtype: DType) -> float | int:
        """Neutral element in *dtype*; the lowest/highest finite or infinite value for max/min."""
        if self is ReduceKind.SUM:
            return 0.0 if dtype.is_float else 0
        if self is ReduceKind.PROD:
            return 1.0 if dtype.is_float else 1
        if dtype.is_float:
            return float("-inf") if self is ReduceKind.MAX else float("inf")
        low, high = dtype.limits
        return low if self is ReduceKind.MAX else high

    @property
    def combiner(self) -> BinaryOp:
        return _COMBINERS[self]


_COMBINERS = {
    ReduceKind.SUM: BinaryOp.ADD,
    ReduceKind.PROD: BinaryOp.MUL,
    ReduceKind.MAX: BinaryOp.MAX,
    ReduceKind.MIN: BinaryOp.MIN,
}
