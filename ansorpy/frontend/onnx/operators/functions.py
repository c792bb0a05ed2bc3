"""Elementwise mathematical functions."""

from __future__ import annotations

import math

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operators.elementwise import function
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def _of_float(fn: Fn) -> Translate:
    """An importer for a function of floats."""

    def build(ctx: NodeContext) -> str:
        ctx.require_float()
        return ctx.apply(fn, ctx.input())

    return build


def _single(fn: Fn) -> Translate:
    """An importer for a function that is computed in float32, even for 16-bit floats."""

    def build(ctx: NodeContext) -> str:
        ctx.require_float()
        if ctx.type().dtype is DType.FLOAT64:
            raise Unsupported("element type float64", "convert the model to float32")
        return ctx.apply(fn, ctx.input())

    return build


def mod(ctx: NodeContext) -> str:
    """The remainder with the divisor's sign, or the dividend's with ``fmod``."""
    return ctx.apply(Fn.REMAINDER if ctx.attr("fmod", 0) else Fn.MOD, ctx.input(0), ctx.input(1))


def is_inf(ctx: NodeContext) -> str:
    """True where the element is infinite with a sign selected by the attributes."""
    ctx.require_float()
    above, below = ctx.attr("detect_positive", 1), ctx.attr("detect_negative", 1)
    x, limit = ctx.input(), ctx.literal(math.inf)
    if above and below:
        return ctx.apply(Fn.EQUAL, ctx.apply(Fn.ABS, x), limit)
    if below:
        return ctx.apply(Fn.EQUAL, x, ctx.literal(-math.inf))
    return ctx.apply(Fn.EQUAL, x, limit) if above else ctx.apply(Fn.LESS, x, x)


OPERATORS: dict[str, Translate] = {
    "Acos": _single(Fn.ACOS),
    "Acosh": _single(Fn.ACOSH),
    "Asin": _single(Fn.ASIN),
    "Asinh": _single(Fn.ASINH),
    "Atan": _single(Fn.ATAN),
    "Atanh": _single(Fn.ATANH),
    "Cos": _of_float(Fn.COS),
    "Cosh": _single(Fn.COSH),
    "IsInf": is_inf,
    "IsNaN": _of_float(Fn.IS_NAN),
    "Mod": mod,
    "Round": _of_float(Fn.ROUND),
    "Sign": function(Fn.SIGN, 0),
    "Sin": _of_float(Fn.SIN),
    "Sinh": _single(Fn.SINH),
    "Tan": _of_float(Fn.TAN),
}
