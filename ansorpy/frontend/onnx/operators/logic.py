"""Comparisons, operations on booleans and on the bits of integers, and selection."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.ops import Fn

__all__ = ["OPERATORS"]

Importer = Callable[[NodeContext], str]


def _binary(fn: Fn, *, swapped: bool = False) -> Importer:
    """An importer for ``fn``; *swapped* exchanges the operands, so ``a > b`` becomes ``b < a``."""

    def build(ctx: NodeContext) -> str:
        a, b = ctx.input(0), ctx.input(1)
        return ctx.apply(fn, b, a) if swapped else ctx.apply(fn, a, b)

    return build


def not_(ctx: NodeContext) -> str:
    """The logical negation."""
    return ctx.apply(Fn.NOT, ctx.input())


def xor(ctx: NodeContext) -> str:
    """True where the truth values differ."""
    a, b = ctx.input(0), ctx.input(1)
    either, both = ctx.apply(Fn.OR, a, b), ctx.apply(Fn.AND, a, b)
    return ctx.apply(Fn.AND, either, ctx.apply(Fn.NOT, both))


def bit_shift(ctx: NodeContext) -> str:
    """The first operand, its bits moved by as many places as the second one says."""
    functions = {"LEFT": Fn.SHIFT_LEFT, "RIGHT": Fn.SHIFT_RIGHT}
    direction = ctx.attr("direction", "")
    if direction not in functions:
        raise Unsupported(f"direction={direction}", "give LEFT or RIGHT")
    return ctx.apply(functions[direction], ctx.input(0), ctx.input(1))


def bitwise_not(ctx: NodeContext) -> str:
    """All bits inverted."""
    return ctx.apply(Fn.BIT_NOT, ctx.input())


def where(ctx: NodeContext) -> str:
    """The second operand where the first is true, otherwise the third."""
    return ctx.apply(Fn.WHERE, ctx.input(0), ctx.input(1), ctx.input(2))


OPERATORS: dict[str, Importer] = {
    "And": _binary(Fn.AND),
    "BitShift": bit_shift,
    "BitwiseAnd": _binary(Fn.BIT_AND),
    "BitwiseNot": bitwise_not,
    "BitwiseOr": _binary(Fn.BIT_OR),
    "BitwiseXor": _binary(Fn.BIT_XOR),
    "Equal": _binary(Fn.EQUAL),
    "Greater": _binary(Fn.LESS, swapped=True),
    "GreaterOrEqual": _binary(Fn.LESS_EQUAL, swapped=True),
    "Less": _binary(Fn.LESS),
    "LessOrEqual": _binary(Fn.LESS_EQUAL),
    "Not": not_,
    "Or": _binary(Fn.OR),
    "Where": where,
    "Xor": xor,
}
