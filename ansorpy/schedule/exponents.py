"""Recognise exponentials relative to another stage, the terms of a softmax."""

from __future__ import annotations

from typing import NamedTuple

from ansorpy.ir.expr import Binary, BinaryOp, Call, Const, Expr, Function, Load
from ansorpy.ir.operands import without_casts
from ansorpy.ir.tensor import ComputeOp

__all__ = ["Exponent", "exponent"]


class Exponent(NamedTuple):
    """``(x - top) * scale``, whose scale is positive, or None for 1; *top* reads another stage."""

    x: Expr
    top: Load
    scale: Const | None


def exponent(op: ComputeOp) -> Exponent | None:
    """The exponent if *op* is ``exp((x - top) * scale)``; None for other stages."""
    call = without_casts(op.body)
    if not isinstance(call, Call) or call.fn is not Function.EXP:
        return None
    above, scale = without_casts(call.args[0]), None
    if isinstance(above, Binary) and above.op is BinaryOp.MUL:
        factors = (above.a, above.b)
        scales = [e for e in factors if isinstance(e, Const) and e.value > 0]
        if len(scales) != 1:
            return None
        scale = scales[0]
        above = without_casts(factors[1 - factors.index(scale)])
    if not isinstance(above, Binary) or above.op is not BinaryOp.SUB:
        return None
    top = without_casts(above.b)
    if not isinstance(top, Load) or not isinstance(top.source, ComputeOp):
        return None
    return Exponent(without_casts(above.a), top, scale)
