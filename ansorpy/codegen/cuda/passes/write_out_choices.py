"""Unroll loops whose iterations compute different formulas, and resolve the choice of formula::

    for p in 0..2  # unrolled                        T[0, c] = X[0, c] - X[2, c]
      T[p, c] = select(p == 0, X[0, c] - X[2, c],    T[1, c] = X[1, c] + X[2, c]
                               X[1, c] + X[2, c])

The compiler would fold the selects as well, but only after copying all formulas to each iteration.
"""

from __future__ import annotations

from ansorpy.codegen.accesses import free_vars
from ansorpy.codegen.cuda.passes.reuse_loads import loaded_once
from ansorpy.codegen.tiles import as_sequence
from ansorpy.ir.analysis.interval import bounds
from ansorpy.ir.expr import Compare, CompareOp, Const, Expr, Select, Var, as_expr, walk
from ansorpy.ir.loops import (
    For,
    ForKind,
    Let,
    Program,
    Seq,
    Stmt,
    expressions,
    walk_stmts,
)
from ansorpy.ir.rewrite.rewriter import Rewriter, map_statements, substitute
from ansorpy.ir.rewrite.simplify import simplify
from ansorpy.ir.sizes import fixed

__all__ = ["written_choices"]


def written_choices(program: Program) -> Program:
    """Expand each unrolled loop whose variable a select compares for equality."""
    return program.with_body(_Once().stmt(_written(program.body, {})))


def _written(s: Stmt, ranges: dict[Var, tuple[int, int]]) -> Stmt:
    match s:
        case For(var, extent, ForKind.UNROLLED, body) if _is_compared(var, body):
            each = (_Iteration(var, n, ranges).stmt(body) for n in range(fixed(extent)))
            made = (_written(one, ranges) for one in each)
            return Seq(tuple(part for one in made for part in as_sequence(one)))
        case For(var, extent, _, _):
            ranges = {**ranges, var: (0, extent - 1)}
        case Let(var, value, _):
            ranges = {**ranges, var: bounds(value, ranges)}
    return map_statements(s, lambda part: _written(part, ranges))


class _Once(Rewriter):
    """Load values shared by several consecutive stores once."""

    def stmt(self, s: Stmt) -> Stmt:
        new = super().stmt(s)
        return loaded_once(new.body) if isinstance(new, Seq) else new


class _Iteration(Rewriter):
    """Substitute a number for a variable and resolve the selects that this decides."""

    def __init__(self, var: Var, number: int, ranges: dict[Var, tuple[int, int]]):
        super().__init__()
        self.known = {var: as_expr(number)}
        self.ranges = ranges

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, Var):
            return self.known.get(e, e)
        if isinstance(e, Select) and _is_choice(e):
            cond = simplify(substitute(e.cond, self.known), self.ranges)
            if isinstance(cond, Const):
                return self.expr(e.then if cond.value else e.other)
        return super().expr(e)


def _is_compared(var: Var, body: Stmt) -> bool:
    """Return whether a select in *body* compares an expression with *var* to a number."""
    return any(
        isinstance(e, Select) and _is_choice(e) and var in free_vars(e.cond)
        for s in walk_stmts(body)
        for root in expressions(s)
        for e in walk(root)
    )


def _is_choice(e: Select) -> bool:
    return isinstance(e.cond, Compare) and e.cond.op is CompareOp.EQ
