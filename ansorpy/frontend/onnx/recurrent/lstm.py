"""LSTM: each step is a product with the hidden state and two elementwise kernels.

All steps but the first share the same tasks.
"""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.recurrent.shared import (
    Activation,
    Direction,
    States,
    Step,
    activations_of,
    bias_of,
    clipped,
    part,
    projected,
    row,
    run_directions,
)
from ansorpy.graph.ops import Fn, MatMul

__all__ = ["OPERATORS"]


def lstm(ctx: NodeContext) -> tuple[str, ...]:
    """All hidden states, and the last hidden and cell state, of one or two directions."""
    return run_directions(ctx, (5, 6), lambda direction: _stepper(ctx, direction))


def _stepper(ctx: NodeContext, direction: Direction) -> Step:
    """The step function; gates are in the order input, output, forget, cell.

    The first three may have peephole weights.
    """
    hidden = ctx.shape(2)[-1]
    biases = bias_of(ctx, direction.number)
    inputs = projected(ctx, direction, biases and ctx.apply(Fn.ADD, *biases))
    recurrent = ctx.transpose(row(ctx, ctx.input(2), direction.number), (1, 0))
    f, g, h = activations_of(ctx, direction.number, ("Sigmoid", "Tanh", "Tanh"))
    peepholes: tuple[str, ...] = ()
    if ctx.has_input(7):
        all_of_them = row(ctx, ctx.input(7), direction.number)
        peepholes = tuple(part(ctx, all_of_them, k, hidden) for k in range(3))

    def step(t: int, states: States) -> tuple[str, ...]:
        before, cell = states
        gates = row(ctx, inputs, t)
        if before is not None:
            gates = ctx.apply(Fn.ADD, ctx.emit(MatMul(), [before, recurrent]), gates)

        def gate(k: int, fn: Activation, peeped: str | None) -> str:
            value = part(ctx, gates, k, hidden)
            if peeped is not None and k < len(peepholes):
                value = ctx.apply(Fn.ADD, value, ctx.apply(Fn.MUL, peeped, peepholes[k]))
            return fn(clipped(ctx, value))

        taken = gate(0, f, cell)
        added = ctx.apply(Fn.MUL, taken, gate(3, g, None))
        if cell is not None:
            coupled = bool(ctx.attr("input_forget", 0))
            kept = ctx.apply(Fn.SUB, ctx.literal(1), taken) if coupled else gate(2, f, cell)
            added = ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, kept, cell), added)
        return ctx.apply(Fn.MUL, gate(1, f, added), h(added)), added

    return step


OPERATORS = {"LSTM": lstm}
