"""C's operators on expressions as text: infix, comparisons, conversions and choices."""

from __future__ import annotations

from ansorpy.codegen.clike.code import (
    ADD,
    AND,
    COMPARE,
    MULTIPLY,
    OR,
    TERNARY,
    UNARY,
    Code,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.operators import BinaryOp, ReduceKind

__all__ = [
    "COMPOUND", "INFIX", "WRAPPING", "chosen", "compared", "converted", "float_suffix", "infix",
]  # fmt: skip

INFIX = {
    BinaryOp.ADD: ("+", ADD), BinaryOp.SUB: ("-", ADD), BinaryOp.MUL: ("*", MULTIPLY),
    BinaryOp.DIV: ("/", MULTIPLY), BinaryOp.AND: ("&&", AND), BinaryOp.OR: ("||", OR),
}  # fmt: skip
"""The sign and the precedence of the operators that C has, too."""

WRAPPING = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
"""Operators whose integers wrap around, where C leaves the overflow of signed ones undefined."""

COMPOUND = {ReduceKind.SUM: "+=", ReduceKind.PROD: "*="}
"""C's assignments that combine with what the target holds, by reduction."""


def infix(op: BinaryOp, a: Code, b: Code, *, wide: bool = False) -> Code:
    """``a op b``."""
    sign, level = INFIX[op]
    return Code(f"{a.at(level)} {sign} {b.at(level + 1)}", level, wide)


def compared(sign: str, a: Code, b: Code) -> Code:
    """``a sign b``."""
    return Code(f"{a.at(COMPARE + 1)} {sign} {b.at(COMPARE + 1)}", COMPARE)


def converted(kind: str, x: Code, *, wide: bool = False) -> Code:
    """*x* converted to the C type *kind*."""
    return Code(f"({kind}){x.at(UNARY)}", UNARY, wide)


def chosen(cond: Code, then: Code, other: Code, *, wide: bool = False) -> Code:
    """``cond ? then : other``, which evaluates only the side taken."""
    text = f"{cond.at(TERNARY + 1)} ? {then.at(TERNARY + 1)} : {other.at(TERNARY)}"
    return Code(text, TERNARY, wide)


def float_suffix(dtype: DType) -> str:
    """The suffix of literals, and of names of mathematical functions, of a computed float type."""
    return "" if dtype is DType.FLOAT64 else "f"
