"""Move guards out of the loops on which they do not depend, each conjunct by itself::

for k in 0..53                                for k in 0..53
  for i in 0..9  # unrolled                     if k < n
    for j in 0..32  # vectorized       -->        for i in 0..9  # unrolled
      if i < m and k < n                            if i < m
        C[i, j] += ...                                for j in 0..32  # vectorized
                                                        C[i, j] += ...
"""

from __future__ import annotations

from ansorpy.ir.analysis.conditions import conjuncts
from ansorpy.ir.builders import all_of
from ansorpy.ir.expr import Expr, Load, as_expr, walk
from ansorpy.ir.extents import most
from ansorpy.ir.loops import For, ForKind, If, Program, Stmt
from ansorpy.ir.rewrite.rewriter import map_statements, substitute

__all__ = ["hoist_guards"]


def hoist_guards(program: Program) -> Program:
    """*program* with its guards as far outside as possible, but not outside of parallel loops.

    Only programs with dimensions change: without them, schedules need no guards to be fast.
    """
    if not program.dims:
        return program
    return program.with_body(_hoisted(program.body))


def _hoisted(s: Stmt) -> Stmt:
    if not isinstance(s, For) or s.kind is ForKind.PARALLEL:
        return map_statements(s, _hoisted)
    if most(s.extent) == 1:
        s = For(s.var, s.extent, s.kind, substitute(s.body, {s.var: as_expr(0)}))
    s = For(s.var, s.extent, s.kind, _hoisted(s.body))
    parts, inner = _guards(s.body)
    outside = [part for part in parts if not _depends(part, s)]
    if not outside:
        return s
    inside = [part for part in parts if _depends(part, s)]
    inner = If(all_of(*inside), inner, None) if inside else inner
    return If(all_of(*outside), For(s.var, s.extent, s.kind, inner), None)


def _guards(s: Stmt) -> tuple[list[Expr], Stmt]:
    """The conditions around all of *s*, and what is under them."""
    parts: list[Expr] = []
    while isinstance(s, If) and s.other is None:
        parts += conjuncts(s.cond)
        s = s.then
    return parts, s


def _depends(part: Expr, loop: For) -> bool:
    """Whether *part* may differ between iterations of *loop*."""
    return any(e is loop.var or isinstance(e, Load) for e in walk(part))
