"""Expand powers with small constant exponents into products."""

from __future__ import annotations

from ansorpy.ir.elementary.power import constant_power
from ansorpy.ir.expr import Binary, BinaryOp, Expr
from ansorpy.ir.loops import Program
from ansorpy.ir.rewrite.rewriter import Rewriter

__all__ = ["expand_powers"]


def expand_powers(program: Program) -> Program:
    """Rewrite ``x ** 3.0`` as ``x * x * x``, and so on."""
    return program.with_body(_Products().stmt(program.body))


class _Products(Rewriter):
    def leave(self, e: Expr) -> Expr:
        if not isinstance(e, Binary) or e.op is not BinaryOp.POW:
            return e
        found = constant_power(e.a, e.b)
        return e if found is None else found
