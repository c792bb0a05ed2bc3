"""Elementwise functions of several operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.graph.ops import Fn
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS", "function"]


def function(fn: Fn, *operands: int) -> Translate:
    """An importer for ``fn`` of the *operands* with these numbers, in this order."""
    return lambda ctx: ctx.apply(fn, *map(ctx.input, operands))


def _chain(fn: Fn) -> Callable[[NodeContext], str]:
    """An importer that combines any number of operands with ``fn``, from left to right."""
    return lambda ctx: reduce(lambda a, b: ctx.apply(fn, a, b), ctx.inputs)


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
    fn, wide = Fn.POW, dtype
    if not dtype.is_float and ctx.type(1).dtype.is_float:
        wide = DType.FLOAT64
    elif not dtype.is_float:
        fn, wide = Fn.INTEGER_POW, DType.INT64
    elif ctx.type(1).dtype is not dtype:
        wide = dtype.of_sums
    return ctx.cast(ctx.apply(fn, ctx.cast(base, wide), ctx.cast(exponent, wide)), dtype)


OPERATORS: dict[str, Translate] = {
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
