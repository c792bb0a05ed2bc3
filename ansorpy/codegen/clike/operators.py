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
from ansorpy.ir.operators import BinaryOp

__all__ = ["INFIX", "WRAPPING", "chosen", "compared", "converted", "infix"]

INFIX = {
    BinaryOp.ADD: ("+", ADD), BinaryOp.SUB: ("-", ADD), BinaryOp.MUL: ("*", MULTIPLY),
    BinaryOp.DIV: ("/", MULTIPLY), BinaryOp.AND: ("&&", AND), BinaryOp.OR: ("||", OR),
}  # fmt: skip
"""The sign and the precedence of the operators that C has, too."""

WRAPPING = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
"""Operators whose integers wrap around, where C leaves the overflow of signed ones undefined."""


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
