"""Recurrent networks with quantized weights."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operands import with_operands
from ansorpy.frontend.onnx.quantized.quantize import moves, quantized_to_range
from ansorpy.frontend.onnx.recurrent.lstm import lstm
from ansorpy.frontend.onnx.recurrent.shared import Factor, row
from ansorpy.graph.integers import multiplied
from ansorpy.graph.ir import Integers
from ansorpy.graph.ops import Fn

__all__ = ["OPERATORS"]

_SCALES = {1: 8, 2: 10}
"""The operand with the scales of each of the weights; their zero points follow it."""


def dynamic_quantize_lstm(ctx: NodeContext) -> tuple[str, ...]:
    """An LSTM with weights of 8 bits, ``[directions, columns, gates * hidden]``.

    Inputs, and the states of each step, are quantized with the range that they have.
    """
    turned = {n: ctx.transpose(ctx.input(n), (0, 2, 1)) for n in _SCALES}
    return lstm(with_operands(ctx, turned), _quantized)


def _quantized(ctx: NodeContext, operand: int, d: int) -> Factor:
    scales = _SCALES[operand]
    weight = ctx.transpose(row(ctx, ctx.input(operand), d), (1, 0))
    parts = [weight, row(ctx, ctx.input(scales), d)]
    if moves(ctx, scales + 1):
        parts.append(row(ctx, ctx.input(scales + 1), d))
    return Factor(tuple(parts), _times)


def _times(ctx: NodeContext, value: str, parts: tuple[str, ...]) -> str:
    weight, scale, *zero = parts
    data, step, offset = quantized_to_range(ctx, value)
    right = Integers(weight, zero[0] if zero else None)
    summed = multiplied(ctx, Integers(data, offset), right)
    scaled = ctx.apply(Fn.MUL, scale, step)
    return ctx.apply(Fn.MUL, ctx.cast(summed, ctx.type_of(scaled).dtype), scaled)


OPERATORS: dict[str, Translate] = {"DynamicQuantizeLSTM": dynamic_quantize_lstm}
