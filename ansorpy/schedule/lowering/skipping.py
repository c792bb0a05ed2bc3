"""Conditions inside loops: those that skip the statement, and the loops around which they move."""

from __future__ import annotations

from collections.abc import Set

from ansorpy.ir.expr import Const, Expr, Load, ReduceKind, Select, Var, walk
from ansorpy.ir.extents import Extent
from ansorpy.ir.loops import For, ForKind, If, Stmt

__all__ = ["condition_to_add", "repeated"]


def condition_to_add(value: Expr, kind: ReduceKind, tile: Set[Expr]) -> Expr | None:
    """The condition without which *value* adds nothing, if a branch on it is cheap; else None.

    A tap that a residue lacks is then skipped instead of multiplied by zero.  A condition on the
    variables of *tile* (rows of a register tile, lanes) stays a select in the arithmetic.
    """
    if not isinstance(value, Select) or not isinstance(value.other, Const):
        return None
    if value.other.value != kind.identity(value.dtype):
        return None
    inside = set(walk(value.cond))
    plain = not any(isinstance(e, Load) for e in inside)
    return value.cond if plain and not inside & tile else None


def repeated(var: Var, extent: Extent, kind: ForKind, body: Stmt) -> Stmt:
    """*body* in a loop; a condition that does not depend on the loop is tested once, outside it."""
    if isinstance(body, If) and body.other is None and kind is not ForKind.PARALLEL:
        inside = set(walk(body.cond))
        if var not in inside and not any(isinstance(e, Load) for e in inside):
            return If(body.cond, For(var, extent, kind, body.then), None)
    return For(var, extent, kind, body)
