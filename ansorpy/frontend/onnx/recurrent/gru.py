"""GRU and the plain recurrent network.

If the reset gate is applied after the product (as in PyTorch), a step of a GRU has one product with
the hidden state; otherwise it has two in sequence.
"""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.recurrent.shared import (
    Cell,
    Direction,
    States,
    activations_of,
    bias_of,
    clipped,
    part,
    projected,
    row,
    run_directions,
)
from ansorpy.graph.ops import Concat, Fn, MatMul

__all__ = ["OPERATORS"]


def gru(ctx: NodeContext) -> tuple[str, ...]:
    """All hidden states, and the last one, of one or two directions."""
    return run_directions(ctx, (5,), lambda direction: _gated(ctx, direction))


def rnn(ctx: NodeContext) -> tuple[str, ...]:
    """``h = f(x W + h R + bias)``: all hidden states, and the last one."""
    return run_directions(ctx, (5,), lambda direction: _plain(ctx, direction))


def _plain(ctx: NodeContext, direction: Direction) -> Cell:
    biases = bias_of(ctx, direction.number)
    inputs = projected(ctx, direction, biases and ctx.apply(Fn.ADD, *biases))
    recurrent = ctx.transpose(row(ctx, ctx.input(2), direction.number), (1, 0))
    (f,) = activations_of(ctx, direction.number, ("Tanh",))

    def step(
        ctx: NodeContext, value: str, states: States, weights: tuple[str, ...]
    ) -> tuple[str, ...]:
        (before,), (recurrent,) = states, weights
        if before is not None:
            value = ctx.apply(Fn.ADD, ctx.emit(MatMul(), [before, recurrent]), value)
        return (f(ctx, clipped(ctx, value)),)

    return Cell(inputs, (recurrent,), step)


def _gated(ctx: NodeContext, direction: Direction) -> Cell:
    """What a direction of a GRU computes; gates are in the order update, reset, hidden."""
    hidden, number = ctx.shape(2)[-1], direction.number
    behind = bool(ctx.attr("linear_before_reset", 0))
    inputs, offset = _inputs(ctx, direction, behind)
    recurrent = ctx.transpose(row(ctx, ctx.input(2), number), (1, 0))
    f, g = activations_of(ctx, number, ("Sigmoid", "Tanh"))

    def step(
        ctx: NodeContext, given: str, states: States, weights: tuple[str, ...]
    ) -> tuple[str, ...]:
        (before,), (recurrent, *rest) = states, weights
        offset = rest[0] if behind and rest else None
        product = None if before is None else ctx.emit(MatMul(), [before, recurrent])

        def gate(k: int) -> str:
            value = part(ctx, given, k, hidden)
            if product is not None:
                value = ctx.apply(Fn.ADD, value, part(ctx, product, k, hidden))
            return f(ctx, clipped(ctx, value))

        def candidate() -> str:
            value, more = part(ctx, given, 2, hidden), offset
            if before is not None and product is not None and behind:
                more = part(ctx, product, 2, hidden)
                more = more if offset is None else ctx.apply(Fn.ADD, more, offset)
            if more is not None:
                value = ctx.apply(Fn.ADD, value, ctx.apply(Fn.MUL, gate(1), more))
            elif before is not None:
                kept = ctx.apply(Fn.MUL, gate(1), before)
                value = ctx.apply(Fn.ADD, value, ctx.emit(MatMul(), [kept, *rest]))
            return g(ctx, clipped(ctx, value))

        update, new = gate(0), candidate()
        if before is None:
            kept = ctx.apply(Fn.MUL, update, new)
            return (ctx.apply(Fn.SUB, new, kept),)
        change = ctx.apply(Fn.MUL, update, ctx.apply(Fn.SUB, before, new))
        return (ctx.apply(Fn.ADD, new, change),)

    return Cell(inputs, _of_each_step(ctx, recurrent, offset, behind), step)


def _of_each_step(
    ctx: NodeContext, recurrent: str, offset: str | None, behind: bool
) -> tuple[str, ...]:
    """The weights of all gates, and perhaps their offset; or those of the last gate apart."""
    if behind:
        return (recurrent,) if offset is None else (recurrent, offset)
    hidden = ctx.shape(2)[-1]
    return part(ctx, recurrent, 0, hidden, 2), part(ctx, recurrent, 2, hidden)


def _inputs(ctx: NodeContext, direction: Direction, behind: bool) -> tuple[str, str | None]:
    """The inputs' part of the gates, and the bias to add to the states' part of the last gate.

    The inputs' part includes both biases, except the bias that the reset gate scales.
    """
    biases = bias_of(ctx, direction.number)
    if biases is None:
        return projected(ctx, direction, None), None
    first, second = biases
    if not behind:
        return projected(ctx, direction, ctx.apply(Fn.ADD, first, second)), None
    hidden = ctx.shape(2)[-1]
    gates = ctx.apply(Fn.ADD, part(ctx, first, 0, hidden, 2), part(ctx, second, 0, hidden, 2))
    bias = ctx.emit(Concat(0), [gates, part(ctx, first, 2, hidden)])
    return projected(ctx, direction, bias), part(ctx, second, 2, hidden)


OPERATORS = {"GRU": gru, "RNN": rnn}
