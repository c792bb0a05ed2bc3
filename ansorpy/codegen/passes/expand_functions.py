"""Expand elementary functions into the arithmetic that approximates them."""

from __future__ import annotations

from ansorpy.codegen.unsupported import undefined
from ansorpy.ir.dtypes import DType
from ansorpy.ir.elementary.power import constant_power
from ansorpy.ir.elementary.table import APPROXIMATIONS, ELEMENTARY
from ansorpy.ir.expr import Binary, BinaryOp, Call, Expr, Function
from ansorpy.ir.loops import Program
from ansorpy.ir.rewrite.rewriter import Rewriter

__all__ = ["expand_functions"]


def expand_functions(program: Program) -> Program:
    """Replace each call of an approximated function in *program* by its expression::

        y[i] = log(x[i])    -->    y[i] = select(x[i] >= 0.0, ..., nan)

    16-bit floats are computed as float32.  This is the last pass before emission, so everything
    that counts operations or looks for patterns sees one call.

    Raises:
        CodegenError: A floating-point function is applied to integers.
    """
    return program.with_body(_Expanded().stmt(program.body))


class _Expanded(Rewriter):
    def leave(self, e: Expr) -> Expr:
        found = _replacement(e)
        return e if found is None else found


def _replacement(e: Expr) -> Expr | None:
    match e:
        case Call(fn, args) if fn in ELEMENTARY:
            return _expanded(fn, args)
        case Binary(BinaryOp.POW, a, b):
            product = constant_power(a, b)
            return _expanded(BinaryOp.POW, (a, b)) if product is None else product
        case _:
            return None


def _expanded(fn: Function | BinaryOp, args: tuple[Expr, ...]) -> Expr | None:
    """The expression that approximates *fn*; None if *fn* is emitted directly."""
    dtype = args[0].dtype
    if not dtype.is_float:
        raise undefined(fn, dtype)
    if dtype.is_half:
        wide = _expanded(fn, tuple(x.astype(DType.FLOAT32) for x in args))
        return None if wide is None else wide.astype(dtype)
    found = APPROXIMATIONS.get((fn, dtype))
    return None if found is None else found.build(*args)
