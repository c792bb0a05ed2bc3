"""The operators of expressions and reductions: their meaning and the types they accept."""

from __future__ import annotations

from enum import Enum

from ansorpy.ir.dtypes import DType

__all__ = ["BITWISE", "SHIFTS", "BinaryOp", "CompareOp", "ReduceKind", "demand_no_truth"]


class BinaryOp(Enum):
    """Arithmetic on two operands of one type; booleans have only AND, OR, MIN and MAX.

    Integers wrap around.  DIV rounds integer quotients towards zero, FLOORDIV rounds them down.
    Quotients and remainders by 0 are 0; the least number of a type divided by -1 is itself, with
    remainder 0.

    FLOORMOD of floats has the divisor's sign and is exact before it is rounded to the type;
    FLOORDIV is ``(a - a % b) / b`` as a whole number.  Both equal numpy's results bit for bit.

    The last five are for integers only.  SHR of a signed integer copies its sign into the places
    that become free.  A shift by a negative number, or by as many bits as the type has or more,
    leaves no bit of the operand: the result is 0, or -1 for SHR of a negative number.
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
    BIT_AND = "&"
    BIT_OR = "|"
    BIT_XOR = "^"
    SHL = "<<"
    SHR = ">>"

    def accepts(self, operand: DType) -> bool:
        """True if the operator is defined on values of type *operand*."""
        if operand is DType.BOOL:
            return self in _OF_BOOLEANS
        if self in BITWISE:
            return operand.is_int
        return self not in (BinaryOp.AND, BinaryOp.OR)


SHIFTS = frozenset({BinaryOp.SHL, BinaryOp.SHR})
BITWISE = SHIFTS | {BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR}
"""Operators on the bits of integers."""
_OF_BOOLEANS = (BinaryOp.AND, BinaryOp.OR, BinaryOp.MIN, BinaryOp.MAX)


class CompareOp(Enum):
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    NE = "!="

    @property
    def negation(self) -> CompareOp:
        """The comparison of integers that holds where this one does not."""
        return _NEGATIONS[self]


_NEGATIONS = {
    CompareOp.LT: CompareOp.GE, CompareOp.GE: CompareOp.LT, CompareOp.LE: CompareOp.GT,
    CompareOp.GT: CompareOp.LE, CompareOp.EQ: CompareOp.NE, CompareOp.NE: CompareOp.EQ,
}  # fmt: skip


class ReduceKind(Enum):
    """How a reduction combines values; ``identity`` is its neutral element."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"

    def identity(self, dtype: DType) -> float | int:
        """The neutral element in *dtype*; for max and min, the lowest or highest value, infinite
        for floats."""
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


def demand_no_truth(*operands: object) -> None:
    """Refuse a Python bool where an expression is meant.

    Raises:
        TypeError: An operand is one, as ``==`` between expressions gives.
    """
    for operand in operands:
        if isinstance(operand, bool):
            raise TypeError(
                f"{operand} is not an expression; == and != say whether two expressions are the "
                "same object: write a.equal(b) or a.not_equal(b)"
            )
