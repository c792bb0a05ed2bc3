"""LSTM: each step is a product with the hidden state and two elementwise kernels."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.recurrent.shared import (
    Activation,
    Cell,
    Direction,
    Factor,
    States,
    activations_of,
    bias_of,
    clipped,
    factor,
    part,
    projected,
    row,
    run_directions,
)
from ansorpy.graph.ops import Fn

__all__ = ["OPERATORS", "lstm"]


FactorOf = Callable[[NodeContext, int, int], Factor]
"""The weights of a direction, by their operand and the direction's number."""


def lstm(ctx: NodeContext, weights: FactorOf = factor) -> tuple[str, ...]:
    """All hidden states, and the last hidden and cell state, of one or two directions."""
    return run_directions(ctx, (5, 6), lambda direction: _cell(ctx, direction, weights))


def _cell(ctx: NodeContext, direction: Direction, weights_of: FactorOf) -> Cell:
    """A direction's step; gates are in the order input, output, forget, cell.

    The first three may have peephole weights.
    """
    hidden = ctx.shape(2)[-1]
    biases = bias_of(ctx, direction.number)
    taken, recurrent = (weights_of(ctx, operand, direction.number) for operand in (1, 2))
    inputs = projected(ctx, direction, biases and ctx.apply(Fn.ADD, *biases), taken)
    f, g, h = activations_of(ctx, direction.number, ("Sigmoid", "Tanh", "Tanh"))
    peepholes: tuple[str, ...] = ()
    if ctx.has_input(7):
        all_of_them = row(ctx, ctx.input(7), direction.number)
        peepholes = tuple(part(ctx, all_of_them, k, hidden) for k in range(3))

    def step(
        ctx: NodeContext, gates: str, states: States, weights: tuple[str, ...]
    ) -> tuple[str, ...]:
        (before, cell), count = states, len(recurrent.parts)
        held, peepholes = weights[:count], weights[count:]
        if before is not None:
            gates = ctx.apply(Fn.ADD, recurrent.times(ctx, before, held), gates)

        def gate(k: int, fn: Activation, peeped: str | None) -> str:
            value = part(ctx, gates, k, hidden)
            if peeped is not None and k < len(peepholes):
                value = ctx.apply(Fn.ADD, value, ctx.apply(Fn.MUL, peeped, peepholes[k]))
            return fn(ctx, clipped(ctx, value))

        taken = gate(0, f, cell)
        added = ctx.apply(Fn.MUL, taken, gate(3, g, None))
        if cell is not None:
            coupled = bool(ctx.attr("input_forget", 0))
            kept = ctx.apply(Fn.SUB, ctx.literal(1), taken) if coupled else gate(2, f, cell)
            added = ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, kept, cell), added)
        return ctx.apply(Fn.MUL, gate(1, f, added), h(ctx, added)), added

    return Cell(inputs, (*recurrent.parts, *peepholes), step)


OPERATORS = {"LSTM": lstm}
