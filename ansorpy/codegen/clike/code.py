"""C expressions as text, with the precedence of their outermost operator."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "ADD",
    "AND",
    "ATOM",
    "COMPARE",
    "MULTIPLY",
    "OR",
    "TERNARY",
    "UNARY",
    "Code",
]  # fmt: skip

TERNARY, OR, AND, COMPARE, ADD, MULTIPLY, UNARY, ATOM = range(1, 9)
"""Precedence levels of C operators; higher binds tighter."""


class Code(NamedTuple):
    """A C expression: its text, the precedence of its outermost operator, and whether it is a
    64-bit integer."""

    text: str
    level: int = ATOM
    wide: bool = False

    def at(self, level: int) -> str:
        """The text as an operand of an operator with precedence *level*."""
        return self.text if self.level >= level else f"({self.text})"
