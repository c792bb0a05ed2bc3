"""LSTM, unrolled over its static number of steps.

The inputs' product is one matrix product for all steps.  A step is then the product with the
hidden state and two elementwise kernels, the same tasks for every step but the first, and every
step reads and writes whole rows of tensors whose first axis is time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.op import Concat, Fn, MatMul

__all__ = ["OPERATORS"]

_ACTIVATIONS = {
    "Relu": Fn.RELU,
    "Sigmoid": Fn.SIGMOID,
    "Softplus": Fn.SOFTPLUS,
    "Softsign": Fn.SOFTSIGN,
    "Tanh": Fn.TANH,
}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class _Direction:
    """The operands of one direction, as graph values.

    ``projected`` is the inputs' part of the gates, ``[steps, batch, 4 * hidden]`` in the order
    input, output, forget, cell; ``recurrent`` is ``[hidden, 4 * hidden]``.  ``peepholes`` are
    those of the first three gates, ``[hidden]`` each.
    """

    projected: str
    recurrent: str
    peepholes: tuple[str, ...]
    activations: tuple[Fn, Fn, Fn]
    clip: float


def lstm(ctx: NodeContext) -> tuple[str, ...]:
    """All hidden states, and the last hidden and cell state, of one or two directions."""
    directions = _directions(ctx)
    batch_first = ctx.attr("layout", 0) == 1
    x = ctx.transpose(ctx.input(0), (1, 0, 2)) if batch_first else ctx.input(0)
    steps, batch, _ = ctx.builder.types[x].shape
    hidden = ctx.shape(2)[-1]
    _refuse_lengths(ctx, steps)
    runs = [
        _run(
            ctx,
            _direction(ctx, x, d),
            _initial(ctx, 5, d, batch_first),
            _initial(ctx, 6, d, batch_first),
            range(steps)[::-1] if backwards else range(steps),
        )
        for d, backwards in enumerate(directions)
    ]
    rows = [states[t] for t in range(steps) for states, _, _ in runs]
    y = _joined(ctx, rows, (steps, len(runs), batch, hidden))
    finals = [
        _joined(ctx, values, (len(runs), batch, hidden))
        for values in ([h for _, h, _ in runs], [c for _, _, c in runs])
    ]
    if batch_first:
        y = ctx.transpose(y, (2, 0, 1, 3))
        finals = [ctx.transpose(value, (1, 0, 2)) for value in finals]
    return (y, *finals)


def _directions(ctx: NodeContext) -> tuple[bool, ...]:
    """Whether each direction runs backwards; refuses forms of the operator we do not compute."""
    direction = ctx.attr("direction", "forward")
    if direction not in _DIRECTIONS:
        raise Unsupported(f"direction={direction}", f"use one of {', '.join(_DIRECTIONS)}")
    if ctx.attr("input_forget", 0):
        raise Unsupported("input_forget=1", "export with separate input and forget gates")
    return _DIRECTIONS[direction]


def _refuse_lengths(ctx: NodeContext, steps: int) -> None:
    """Sequences shorter than the tensor would need a mask a step."""
    if ctx.has_input(4) and set(ctx.constant_ints(4, "sequence_lens")) != {steps}:
        raise Unsupported("sequence_lens", "pad the sequences and leave this input out")


def _direction(ctx: NodeContext, x: str, d: int) -> _Direction:
    steps, batch, size = ctx.builder.types[x].shape
    hidden = ctx.shape(2)[-1]
    weight = ctx.transpose(_row(ctx, ctx.input(1), d), (1, 0))
    recurrent = ctx.transpose(_row(ctx, ctx.input(2), d), (1, 0))
    product = ctx.emit(MatMul(), [ctx.reshape(x, (steps * batch, size)), weight])
    if ctx.has_input(3):
        both = _row(ctx, ctx.input(3), d)
        halves = [_part(ctx, both, k, 4 * hidden) for k in range(2)]
        product = ctx.apply(Fn.ADD, product, ctx.apply(Fn.ADD, *halves))
    peepholes: tuple[str, ...] = ()
    if ctx.has_input(7):
        row = _row(ctx, ctx.input(7), d)
        peepholes = tuple(_part(ctx, row, k, hidden) for k in range(3))
    projected = ctx.reshape(product, (steps, batch, 4 * hidden))
    return _Direction(
        projected, recurrent, peepholes, _activations(ctx, d), float(ctx.attr("clip", 0.0))
    )


def _activations(ctx: NodeContext, d: int) -> tuple[Fn, Fn, Fn]:
    """Of the gates, of the cell's input, and of its output; names know no case."""
    names: list[bytes] = ctx.attr("activations", [])
    given = [name.decode() for name in names] or ["Sigmoid", "Tanh", "Tanh"] * (d + 1)
    known = {name.lower(): fn for name, fn in _ACTIVATIONS.items()}
    chosen = [known.get(name.lower()) for name in given[3 * d : 3 * d + 3]]
    f, g, h = (*chosen, None, None, None)[:3]
    if f is None or g is None or h is None:
        raise Unsupported(f"activations={given}", f"use three of {', '.join(_ACTIVATIONS)}")
    return f, g, h


def _initial(ctx: NodeContext, index: int, d: int, batch_first: bool) -> str | None:
    if not ctx.has_input(index):
        return None
    value = ctx.input(index)
    return _row(ctx, ctx.transpose(value, (1, 0, 2)) if batch_first else value, d)


def _run(
    ctx: NodeContext,
    direction: _Direction,
    hidden: str | None,
    cell: str | None,
    order: Sequence[int],
) -> tuple[dict[int, str], str, str]:
    """The hidden state after each step, by its place, and the last hidden and cell state."""
    states: dict[int, str] = {}
    for t in order:
        hidden, cell = _step(ctx, direction, t, hidden, cell)
        states[t] = hidden
    assert hidden is not None and cell is not None
    return states, hidden, cell


def _step(
    ctx: NodeContext, direction: _Direction, t: int, hidden: str | None, cell: str | None
) -> tuple[str, str]:
    """One step: four gates, then the new hidden and cell state; None stands for zeros."""
    gates = _row(ctx, direction.projected, t)
    if hidden is not None:
        gates = ctx.apply(Fn.ADD, ctx.emit(MatMul(), [hidden, direction.recurrent]), gates)
    width = ctx.builder.types[gates].shape[-1] // 4
    f, g, h = direction.activations

    def gate(k: int, fn: Fn, peeped: str | None) -> str:
        value = _part(ctx, gates, k, width)
        if peeped is not None and k < len(direction.peepholes):
            value = ctx.apply(Fn.ADD, value, ctx.apply(Fn.MUL, peeped, direction.peepholes[k]))
        if direction.clip > 0:
            value = ctx.apply(Fn.CLIP, value, params=(-direction.clip, direction.clip))
        return ctx.apply(fn, value)

    added = ctx.apply(Fn.MUL, gate(0, f, cell), gate(3, g, None))
    if cell is not None:
        added = ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, gate(2, f, cell), cell), added)
    return ctx.apply(Fn.MUL, gate(1, f, added), ctx.apply(h, added)), added


def _row(ctx: NodeContext, value: str, place: int) -> str:
    """*value* at *place* of its first axis, that axis dropped."""
    shape = ctx.builder.types[value].shape
    ranges = [range(place, place + 1), *map(range, shape[1:])]
    return ctx.reshape(ctx.slice(value, ranges), shape[1:])


def _part(ctx: NodeContext, value: str, k: int, width: int) -> str:
    """The *k*-th *width* elements of the last axis."""
    *lead, _ = ctx.builder.types[value].shape
    return ctx.slice(value, [*map(range, lead), range(k * width, (k + 1) * width)])


def _joined(ctx: NodeContext, rows: Sequence[str], shape: tuple[int, ...]) -> str:
    """*rows* ``[batch, hidden]`` after one another, as a tensor of *shape*."""
    stacked = rows[0] if len(rows) == 1 else ctx.emit(Concat(0), rows)
    return ctx.reshape(stacked, shape)


OPERATORS = {"LSTM": lstm}
