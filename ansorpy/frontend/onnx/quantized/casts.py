"""Conversions of the element type."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, element_type_of
from ansorpy.frontend.onnx.quantized.narrow import narrowed, numbers
from ansorpy.graph.ops import Cast
from ansorpy.ir.narrow import ElementType, Narrow

__all__ = ["OPERATORS"]


def cast(ctx: NodeContext) -> str:
    """Convert to the type that ``to`` names."""
    return _converted(ctx, element_type_of(ctx.attr("to", 0)))


def cast_like(ctx: NodeContext) -> str:
    """Convert to the element type of the second operand."""
    return _converted(ctx, ctx.builder.narrow.get(ctx.operand(1), ctx.type(1).dtype))


def _converted(ctx: NodeContext, wanted: ElementType) -> str:
    given = ctx.input()
    if ctx.builder.narrow.get(given, ctx.type().dtype) is wanted:
        return given
    value = numbers(ctx, given)
    if not isinstance(wanted, Narrow):
        return ctx.emit(Cast(wanted), [value])
    saturates, rounding = bool(ctx.attr("saturate", 1)), ctx.attr("round_mode", "up")
    return narrowed(ctx, value, wanted, saturate=saturates, rounding=rounding)


OPERATORS = {"Cast": cast, "CastLike": cast_like}
