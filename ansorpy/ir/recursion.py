"""Raise Python's recursion limit for recursion over deep expressions."""

from __future__ import annotations

import sys

from ansorpy.ir.analysis.sharing import operands_first
from ansorpy.ir.expr import Expr, children

__all__ = ["depth", "make_room"]

FRAMES = 8
"""Maximum number of calls between the handling of an expression and that of its operand."""
ORDINARY = 50
"""Number of levels for which Python's own limit suffices."""
DEEPEST = 4000
"""Maximum number of levels: more could overflow a stack of 8 MiB."""


def depth(root: Expr) -> int:
    """The number of levels of *root*: 1 for a constant, a variable or a load at constant indices.

    >>> from ansorpy.ir.expr import Var
    >>> depth(Var("i")), depth(Var("i") * 2 + 1)
    (1, 3)
    """
    levels: dict[Expr, int] = {}
    for e in operands_first([root]):
        levels[e] = 1 + max((levels[part] for part in children(e)), default=0)
    return levels[root]


def make_room(body: Expr) -> None:
    """Raise the interpreter's recursion limit if *body* is deeper than the current limit allows.

    Sums written term by term, and chains of inlined stages, are as deep as their length.

    Raises:
        ValueError: *body* is deeper than :data:`DEEPEST`.
    """
    levels = depth(body)
    if levels > DEEPEST:
        raise ValueError(
            f"an expression of {levels} levels is too deep; the maximum is {DEEPEST}: "
            "move parts of it to separate computes"
        )
    if levels > ORDINARY:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + FRAMES * levels))
