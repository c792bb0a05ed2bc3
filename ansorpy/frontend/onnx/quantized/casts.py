"""Conversions of the element type."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, element_type_of
from ansorpy.frontend.onnx.quantized.narrow import narrowed, numbers
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Cast, Fn, Reinterpret
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


def bit_cast(ctx: NodeContext) -> str:
    """The same bits as elements of the type that ``to`` names, which has the same size."""
    given = ctx.builder.narrow.get(ctx.input(), ctx.type().dtype)
    wanted = element_type_of(ctx.attr("to", 0))
    if given.bits != wanted.bits:
        raise Unsupported(f"to={wanted.value}", f"it must have the size of {given.value}")
    if not isinstance(wanted, Narrow):
        return ctx.emit(Reinterpret(wanted), [ctx.input()])
    if wanted.bits == 8 or wanted.is_float:
        held = ctx.emit(Reinterpret(wanted.held), [ctx.input()])
        if wanted.bits < 8:
            lowest = ctx.literal((1 << wanted.bits) - 1, wanted.held)
            held = ctx.apply(Fn.BIT_AND, held, lowest)
        ctx.builder.narrow[held] = wanted
        return held
    return narrowed(ctx, ctx.input(), wanted)


OPERATORS = {"BitCast": bit_cast, "Cast": cast, "CastLike": cast_like}
