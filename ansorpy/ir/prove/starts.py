"""Generalise a program so that its parallel tiles start anywhere, which is easier to prove.

A tile's start is the minimum of two numbers, and each minimum doubles the number of cases that isl
has to distinguish.  A claim that holds for tiles that start anywhere holds for the actual tiles.
"""

from __future__ import annotations

from ansorpy.ir.analysis.interval import Ranges, extents_of
from ansorpy.ir.expr import Var, has_load, walk
from ansorpy.ir.extents import least
from ansorpy.ir.loops import For, ForKind, Let, Program, Stmt, expressions, walk_stmts
from ansorpy.ir.rewrite.rewriter import map_statements

__all__ = ["starting_anywhere"]


def starting_anywhere(program: Program) -> Program:
    """*program* with lets directly inside parallel loops replaced by more parallel loops::

        for b in 0..6  # parallel             for b in 0..6  # parallel
          start = min(b * 3, 13)      -->       for start in 0..14  # parallel
          out[start] = ...                        out[start] = ...

    A let stays if it reads memory, or if something else depends on the same loops.
    """
    return program.with_body(_outside(program.body))


def _outside(s: Stmt) -> Stmt:
    if isinstance(s, For) and s.kind is ForKind.PARALLEL:
        return _inside(s, {})
    return map_statements(s, _outside)


def _inside(s: Stmt, ranges: Ranges) -> Stmt:
    """*s*, which is around the body of the innermost parallel loop, or that body."""
    match s:
        case For(var, extent, ForKind.PARALLEL, body):
            inner = _inside(body, {**ranges, var: (0, extent - 1)})
            return For(var, extent, ForKind.PARALLEL, inner)
        case Let(var, value, body):
            low, high = extents_of(value, ranges)
            inner = _inside(body, {**ranges, var: (low, high)})
            used = {e for e in walk(value) if isinstance(e, Var)}
            if least(low) < 0 or has_load(value) or _depends(body, used):
                return Let(var, value, inner)
            return For(var, high + 1, ForKind.PARALLEL, inner)
    return s


def _depends(s: Stmt, on: set[Var]) -> bool:
    return any(e in on for part in walk_stmts(s) for root in expressions(part) for e in walk(root))
