"""Loops that end where a guard ends them, which only sizes decide::

for i in 0..10                     for i in 0..min((n + 7)//8, 10)
  if i * 8 < n             -->       ...
    ...
"""

from __future__ import annotations

from ansorpy.codegen.accesses import free_vars
from ansorpy.ir.analysis.affine import linear
from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.analysis.interval import extents_of
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Compare, CompareOp, Expr, SizeVar, Var, as_expr
from ansorpy.ir.extents import AnyExtent, extreme, most
from ansorpy.ir.loops import For, ForKind, If, Program, Stmt
from ansorpy.ir.rewrite.rewriter import map_statements
from ansorpy.ir.symbols import SizeOp

__all__ = ["iterations", "limit_loops"]


def limit_loops(program: Program) -> Program:
    """*program*, in which serial and parallel loops have no iterations that a guard skips."""
    if not program.dims:
        return program
    return program.with_body(_limited(program.body))


def _limited(s: Stmt) -> Stmt:
    s = map_statements(s, _limited)
    if not isinstance(s, For) or s.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
        return s
    guard = s.body
    if not isinstance(guard, If) or guard.other is not None:
        return s
    end, left = s.extent, []
    for part in conjuncts(guard.cond):
        count = iterations(part, s.var)
        if count is None:
            left.append(part)
        elif most(count) < most(end) or most(end - count) > 0:
            end = extreme(SizeOp.MIN, end, count)
    if end == s.extent:
        return s
    body = If(all_of(*left), guard.then, None) if left else guard.then
    return For(s.var, end, s.kind, body)


def iterations(part: Expr, var: Var) -> AnyExtent | None:
    """How often the condition *part* holds for ``var = 0, 1, ..``, until it fails for good.

    None if more than sizes decides it, or if it does not become false.
    """
    if not isinstance(part, Compare) or part.op not in (CompareOp.LT, CompareOp.LE):
        return None
    difference = linear(part.a - part.b)
    step = difference.terms.get(var, 0)
    if step <= 0:
        return None
    beyond = linear(difference.to_expr() - var * step).to_expr()
    if not all(isinstance(v, SizeVar) for v in free_vars(beyond)):
        return None
    low, high = extents_of(as_expr(0) - beyond, {})
    if low != high:
        return None
    count = (low + (step - 1)) // step if part.op is CompareOp.LT else low // step + 1
    return extreme(SizeOp.MAX, count, 0)
