"""Shared parts of recurrent networks: directions, initial states, steps, results.

One matrix product multiplies the inputs of all steps; every step reads and writes whole rows of
tensors whose first axis is time.  Few steps are unrolled; many, or as many as a call says, are a
loop of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext
from ansorpy.frontend.onnx.control.regions import Body, LoopPlan
from ansorpy.frontend.onnx.control.scopes import Inner
from ansorpy.frontend.onnx.operators.activation import ACTIVATIONS, Parametrised
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Concat, Expand, Fn, MatMul, Shape, TensorType
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent

__all__ = [
    "Activation", "Cell", "Direction", "Factor", "States", "activations_of", "bias_of", "clipped",
    "factor", "part", "projected", "row", "run_directions",
]  # fmt: skip

Activation = Callable[[NodeContext, str], str]
"""An activation with its parameters."""


def _affine(ctx: NodeContext, params: tuple[float, ...], x: str) -> str:
    alpha, beta = map(ctx.literal, params)
    return ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, x, alpha), beta)


def _scaled_tanh(ctx: NodeContext, params: tuple[float, ...], x: str) -> str:
    alpha, beta = map(ctx.literal, params)
    return ctx.apply(Fn.MUL, ctx.apply(Fn.TANH, ctx.apply(Fn.MUL, x, beta)), alpha)


_ACTIVATIONS: Mapping[str, tuple[Parametrised, tuple[float | None, ...]]] = {
    **ACTIVATIONS,
    "Affine": (_affine, (None, None)),
    "ScaledTanh": (_scaled_tanh, (None, None)),
}
"""Each activation with the defaults of its alpha and beta (None if they must be given)."""

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

States = tuple[str | None, ...]


@dataclass(frozen=True)
class Direction:
    """One direction of a network: its number and its inputs, ``[steps, batch, size]``."""

    number: int
    x: str


@dataclass(frozen=True)
class Cell:
    """What one direction computes in each step.

    Args:
        inputs: The inputs' part of the gates, ``[steps, batch, gates * hidden]``.
        weights: Further values that every step reads.
        step: New states from the step's row of ``inputs``, the states (None: zeros), and the
            weights; the first state is the result.
    """

    inputs: str
    weights: tuple[str, ...]
    step: Callable[[NodeContext, str, States, tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True)
class Factor:
    """A matrix that inputs or states are multiplied by.

    Args:
        parts: The values that hold it.
        times: The product of the rows of a value with the matrix, from the value and the parts.
    """

    parts: tuple[str, ...]
    times: Callable[[NodeContext, str, tuple[str, ...]], str]


def factor(ctx: NodeContext, operand: int, d: int) -> Factor:
    """The weights of direction *d* in *operand*, transposed."""
    weight = ctx.transpose(row(ctx, ctx.input(operand), d), (1, 0))
    return Factor((weight,), lambda ctx, value, parts: ctx.emit(MatMul(), [value, *parts]))


_MOST_UNROLLED = 256
"""Programs for GPUs have no loops over kernels; planning the calls of more steps takes seconds."""

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}


def _refuse_other_weights(ctx: NodeContext, directions: int) -> None:
    """Refuse weights that do not fit the data, which onnx's shape inference does not look at."""
    hidden = ctx.shape(2)[-1]
    rows = _GATES[ctx.node.op_type] * hidden
    expected = (directions, rows, ctx.shape(0)[-1]), (directions, rows, hidden)
    if (ctx.shape(1), ctx.shape(2)) != expected:
        raise Unsupported("W and R", f"their shapes must be {expected[0]} and {expected[1]}")


def run_directions(
    ctx: NodeContext, states: Sequence[int], cell_of: Callable[[Direction], Cell]
) -> tuple[str, ...]:
    """All results ``[steps, directions, batch, hidden]``, then each state after the last step.

    Args:
        states: Numbers of the operands that are initial states.
        cell_of: Returns what a direction computes.
    """
    directions = _directions(ctx)
    for operand in range(3):  # the data and both weights
        ctx.require_rank(operand, 3)
    _refuse_other_weights(ctx, len(directions))
    batch_first = ctx.attr("layout", 0) == 1
    x = ctx.transpose(ctx.input(0), (1, 0, 2)) if batch_first else ctx.input(0)
    steps, batch, _ = ctx.type_of(x).shape
    lengths = _lengths(ctx, steps)
    is_unrolled = isinstance(steps, int) and steps <= _MOST_UNROLLED
    run = _unrolled if is_unrolled else _looped
    runs = []
    for d, backwards in enumerate(directions):
        first = tuple(_initial(ctx, index, d, batch_first) for index in states)
        runs.append(run(ctx, cell_of(Direction(d, x)), first, lengths, backwards))
    hidden = ctx.shape(2)[-1]
    y = ctx.concat([ctx.reshape(rows, (steps, 1, batch, hidden)) for rows, _ in runs], 1)
    finals = [
        ctx.concat([ctx.reshape(last[n], (1, batch, hidden)) for _, last in runs], 0)
        for n in range(len(states))
    ]
    if batch_first:
        y = ctx.transpose(y, (2, 0, 1, 3))
        finals = [ctx.transpose(value, (1, 0, 2)) for value in finals]
    return (y, *finals)


_Run = tuple[str, tuple[str, ...]]
"""The results of all steps, ``[steps, batch, hidden]``, and the states after the last one."""


def _unrolled(
    ctx: NodeContext, cell: Cell, states: States, lengths: str | None, backwards: bool
) -> _Run:
    shape = ctx.type_of(cell.inputs).shape
    order = range(ctx.number(shape[0], "steps"))
    if not order:
        zeros = (shape[1], ctx.shape(2)[-1])
        none = ctx.builder.add_empty(ctx.node.output[0], TensorType((0, *zeros), ctx.type().dtype))
        return none, tuple(_zeros(ctx, zeros) if state is None else state for state in states)
    results: dict[int, str] = {}
    last: tuple[str, ...] = ()
    for t in reversed(order) if backwards else order:
        given = row(ctx, cell.inputs, t)
        place = ctx.literal(t, DType.INT32)
        results[t], last = _step(ctx, cell, given, states, cell.weights, lengths, place)
        states = last
    rows = [results[t] for t in order]
    stacked = rows[0] if len(rows) == 1 else ctx.emit(Concat(0), rows)
    return ctx.reshape(stacked, (len(rows), *ctx.type_of(rows[0]).shape)), last


def _looped(
    ctx: NodeContext, cell: Cell, states: States, lengths: str | None, backwards: bool
) -> _Run:
    steps, batch, _ = ctx.type_of(cell.inputs).shape
    zeros = (batch, ctx.shape(2)[-1])
    first = [_zeros(ctx, zeros) if state is None else state for state in states]
    plan = LoopPlan(steps, state=tuple(first), read=((cell.inputs, backwards),),
                    written=(backwards,), wanted=(True,))  # fmt: skip
    inner = Inner(ctx.builder, ctx.values, {}, ctx.known)
    loop = Body(inner, ctx, plan)
    loop.inputs(ctx.builder.types)
    within = replace(ctx, builder=inner.builder, values=inner.values, known=inner.known)
    weights = tuple(inner.captured_value(weight) for weight in cell.weights)
    place = within.cast(loop.counter, DType.INT32)
    if backwards:
        place = within.apply(Fn.SUB, within.size(steps - 1, DType.INT32), place)
    of_each = None if lengths is None else inner.captured_value(lengths)
    result, last = _step(within, cell, loop.rows[0], tuple(loop.state), weights, of_each, place)
    *finals, rows = loop.emit([*last, result])
    return str(rows), tuple(map(str, finals))


def _zeros(ctx: NodeContext, shape: Shape) -> str:
    return ctx.emit(Expand(shape), [ctx.literal(np.zeros((1,) * len(shape)))])


def _step(
    ctx: NodeContext,
    cell: Cell,
    given: str,
    states: States,
    weights: tuple[str, ...],
    lengths: str | None,
    place: str,
) -> tuple[str, tuple[str, ...]]:
    """The result and the new states of the step *place*.

    Behind its end, a sequence keeps its states, and the result is 0.
    """
    made = cell.step(ctx, given, states, weights)
    if lengths is None:
        return made[0], made
    inside, zero = ctx.apply(Fn.LESS, place, lengths), ctx.literal(0)

    def chosen(new: str, old: str | None) -> str:
        return ctx.apply(Fn.WHERE, inside, new, zero if old is None else old)

    kept = tuple(chosen(new, old) for new, old in zip(made, states, strict=True))
    return chosen(made[0], None), kept


def _directions(ctx: NodeContext) -> tuple[bool, ...]:
    """Whether each direction runs backwards."""
    direction = ctx.attr("direction", "forward")
    if direction not in _DIRECTIONS:
        raise Unsupported(f"direction={direction}", f"use one of {', '.join(_DIRECTIONS)}")
    return _DIRECTIONS[direction]


def _lengths(ctx: NodeContext, steps: AnyExtent) -> str | None:
    """The length of each sequence, ``[batch, 1]``; None if all have all *steps*."""
    if not ctx.has_input(4):
        return None
    array = ctx.builder.constants.get(ctx.input(4))
    if array is not None and isinstance(steps, int) and (array == steps).all():
        return None
    return ctx.reshape(ctx.cast(ctx.input(4), DType.INT32), (*ctx.shape(4), 1))


def _initial(ctx: NodeContext, index: int, d: int, batch_first: bool) -> str | None:
    """A direction's initial state; None for zeros."""
    if not ctx.has_input(index):
        return None
    array = ctx.builder.constants.get(ctx.input(index))
    if array is not None and not array.any():
        return None
    value = ctx.input(index)
    return row(ctx, ctx.transpose(value, (1, 0, 2)) if batch_first else value, d)


def activations_of(ctx: NodeContext, d: int, default: Sequence[str]) -> tuple[Activation, ...]:
    """The activations of a direction; names are case-insensitive.

    Activations with parameters take these from the attributes in sequence, over all directions.
    """
    names: list[bytes] = ctx.attr("activations", [])
    given = [name.decode() for name in names] or [*default] * (d + 1)
    left = [iter(ctx.attr(f"activation_{name}", ())) for name in ("alpha", "beta")]
    known = {name.lower(): kind for name, kind in _ACTIVATIONS.items()}
    count = len(default)
    if not known.keys() >= {name.lower() for name in given} or len(given) < count * (d + 1):
        names_of_all = ", ".join(sorted(_ACTIVATIONS))
        raise Unsupported(f"activations={given}", f"use {count} of {names_of_all}")
    found: list[Activation] = []
    for name in given:
        fn, usual = known[name.lower()]
        params = tuple(next(v, u) for v, u in zip(left, usual, strict=False))
        numbers = tuple(float(p) for p in params if p is not None)
        if len(numbers) < len(usual):
            raise Unsupported(f"activations={given}", f"give alpha and beta of {name}")
        found.append(partial(_activated, fn, numbers))
    return tuple(found[count * d : count * (d + 1)])


def _activated(fn: Parametrised, numbers: tuple[float, ...], ctx: NodeContext, x: str) -> str:
    return fn(ctx, numbers, x)


def projected(
    ctx: NodeContext, direction: Direction, bias: str | None, weights: Factor | None = None
) -> str:
    """The inputs' part of all gates, ``[steps, batch, gates * hidden]``.

    Args:
        weights: Those of the inputs; None for the operand W.
    """
    steps, batch, size = ctx.type_of(direction.x).shape
    weights = weights or factor(ctx, 1, direction.number)
    rows = ctx.reshape(direction.x, (steps * batch, size))
    product = weights.times(ctx, rows, weights.parts)
    if bias is not None:
        product = ctx.apply(Fn.ADD, product, bias)
    return ctx.reshape(product, (steps, batch, ctx.type_of(product).shape[-1]))


def bias_of(ctx: NodeContext, d: int) -> tuple[str, str] | None:
    """A direction's biases of the inputs' product and of the states' product, for all gates."""
    if not ctx.has_input(3):
        return None
    both = row(ctx, ctx.input(3), d)
    width = ctx.type_of(both).shape[-1] // 2
    return part(ctx, both, 0, width), part(ctx, both, 1, width)


def clipped(ctx: NodeContext, value: str) -> str:
    """*value* clipped to the bounds that ``clip`` sets."""
    bound = float(ctx.attr("clip", 0.0))
    return ctx.apply(Fn.CLIP, value, params=(-bound, bound)) if bound > 0 else value


def row(ctx: NodeContext, value: str, place: int) -> str:
    """*value* at index *place* of its first axis, which is dropped."""
    shape = ctx.type_of(value).shape
    return ctx.reshape(ctx.slice(value, {0: Cut(place, 1)}), shape[1:])


def part(ctx: NodeContext, value: str, k: int, width: int, count: int = 1) -> str:
    """Elements ``k * width`` to ``(k + count) * width`` of the last axis."""
    last = len(ctx.type_of(value).shape) - 1
    return ctx.slice(value, {last: Cut(k * width, count * width)})
