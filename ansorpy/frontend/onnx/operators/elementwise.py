"""Elementwise functions of several operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.graph.ops import Fn
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]

Importer = Callable[[NodeContext], str]


def _chain(fn: Fn) -> Importer:
    """An importer that combines any number of operands with ``fn``, from left to right."""

    def build(ctx: NodeContext) -> str:
        return reduce(lambda a, b: ctx.apply(fn, a, b), ctx.inputs)

    return build


def mean(ctx: NodeContext) -> str:
    """The sum of the operands times the reciprocal of their number."""
    ctx.require_float()
    total = _chain(Fn.ADD)(ctx)
    return ctx.apply(Fn.MUL, total, ctx.literal(1.0 / len(ctx.inputs)))


def power(ctx: NodeContext) -> str:
    """``x ** y``; an exponent of another type is converted to the base's, or to float32 if that has
    16 bits: these lack the odd numbers of which a negative base takes its sign.

    Of integers, it is an integer, cut if the exponent is not one.
    """
    base, exponent, dtype = ctx.input(0), ctx.input(1), ctx.type(0).dtype
    if not dtype.is_float:
        is_whole = not ctx.type(1).dtype.is_float
        wide = DType.INT64 if is_whole else DType.FLOAT64
        fn = Fn.INTEGER_POW if is_whole else Fn.POW
        found = ctx.apply(fn, ctx.cast(base, wide), ctx.cast(exponent, wide))
        return ctx.cast(found, dtype)
    if ctx.type(1).dtype is dtype:
        return ctx.apply(Fn.POW, base, exponent)
    real = dtype.of_sums
    found = ctx.apply(Fn.POW, ctx.cast(base, real), ctx.cast(exponent, real))
    return ctx.cast(found, dtype)


OPERATORS: dict[str, Importer] = {
    "Add": _chain(Fn.ADD),
    "Div": _chain(Fn.DIV),
    "Max": _chain(Fn.MAX),
    "Mean": mean,
    "Min": _chain(Fn.MIN),
    "Mul": _chain(Fn.MUL),
    "Pow": power,
    "Sub": _chain(Fn.SUB),
    "Sum": _chain(Fn.ADD),
}
