"""Room on the interpreter's stack for what recurses over deep expressions."""

from __future__ import annotations

import sys

from ansorpy.ir.analysis.sharing import operands_first
from ansorpy.ir.expr import Expr, children

__all__ = ["depth", "make_room"]

FRAMES = 8
"""At most this many calls lie between what handles an expression and what handles its operand."""
ORDINARY = 50
"""Python's own limit suffices for so many levels."""
DEEPEST = 4000
"""Calls for more levels than this could overflow a stack of 8 MiB."""


def depth(root: Expr) -> int:
    """The levels of *root*: 1 for a constant, a variable or an element at constant indices.

    >>> from ansorpy.ir.expr import Var
    >>> depth(Var("i")), depth(Var("i") * 2 + 1)
    (1, 3)
    """
    levels: dict[Expr, int] = {}
    for e in operands_first([root]):
        levels[e] = 1 + max((levels[part] for part in children(e)), default=0)
    return levels[root]


def make_room(body: Expr) -> None:
    """Raise the interpreter's recursion limit if *body* is deeper than the present one allows for.

    Sums written term by term, and chains of inlined stages, are as deep as they are long.

    Raises:
        ValueError: *body* is deeper than :data:`DEEPEST`.
    """
    levels = depth(body)
    if levels > DEEPEST:
        raise ValueError(
            f"an expression of {levels} levels is too deep, {DEEPEST} are the most: "
            "give parts of it computes of their own"
        )
    if levels > ORDINARY:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + FRAMES * levels))
