"""Comparisons, operations on booleans and on the bits of integers, and selection."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operators.elementwise import function
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn

__all__ = ["OPERATORS"]


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


OPERATORS: dict[str, Translate] = {
    "And": function(Fn.AND, 0, 1),
    "BitShift": bit_shift,
    "BitwiseAnd": function(Fn.BIT_AND, 0, 1),
    "BitwiseNot": function(Fn.BIT_NOT, 0),
    "BitwiseOr": function(Fn.BIT_OR, 0, 1),
    "BitwiseXor": function(Fn.BIT_XOR, 0, 1),
    "Equal": function(Fn.EQUAL, 0, 1),
    "Greater": function(Fn.LESS, 1, 0),
    "GreaterOrEqual": function(Fn.LESS_EQUAL, 1, 0),
    "Less": function(Fn.LESS, 0, 1),
    "LessOrEqual": function(Fn.LESS_EQUAL, 0, 1),
    "Not": function(Fn.NOT, 0),
    "Or": function(Fn.OR, 0, 1),
    "Where": function(Fn.WHERE, 0, 1, 2),
    "Xor": xor,
}
