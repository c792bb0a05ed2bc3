"""Shared parts of recurrent networks: directions, initial states, steps, results.

The networks are unrolled over their static number of steps.  One matrix product multiplies the
inputs of all steps; every step reads and writes whole rows of tensors whose first axis is time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported
from ansorpy.graph.ops import Concat, Fn, MatMul, Shape
from ansorpy.ir.dtypes import DType

__all__ = [
    "Activation", "Direction", "activations_of", "bias_of", "clipped", "joined", "part",
    "projected", "row", "run_directions",
]  # fmt: skip

Activation = Callable[[str], str]


_Builder = Callable[[NodeContext, tuple[float, ...], str], str]


def _by(fn: Fn) -> _Builder:
    return lambda ctx, params, x: ctx.apply(fn, x, params=params)


def _affine(ctx: NodeContext, params: tuple[float, ...], x: str) -> str:
    alpha, beta = map(ctx.literal, params)
    return ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, x, alpha), beta)


def _scaled_tanh(ctx: NodeContext, params: tuple[float, ...], x: str) -> str:
    alpha, beta = map(ctx.literal, params)
    return ctx.apply(Fn.MUL, ctx.apply(Fn.TANH, ctx.apply(Fn.MUL, x, beta)), alpha)


def _thresholded_relu(ctx: NodeContext, params: tuple[float, ...], x: str) -> str:
    is_above = ctx.apply(Fn.LESS, ctx.literal(params[0]), x)
    return ctx.apply(Fn.WHERE, is_above, x, ctx.literal(0))


_ACTIVATIONS: Mapping[str, tuple[_Builder, tuple[float | None, ...]]] = {
    "Affine": (_affine, (None, None)),
    "Elu": (_by(Fn.ELU), (1.0,)),
    "HardSigmoid": (_by(Fn.HARD_SIGMOID), (0.2, 0.5)),
    "LeakyRelu": (_by(Fn.LEAKY_RELU), (0.01,)),
    "Relu": (_by(Fn.RELU), ()),
    "ScaledTanh": (_scaled_tanh, (None, None)),
    "Sigmoid": (_by(Fn.SIGMOID), ()),
    "Softplus": (_by(Fn.SOFTPLUS), ()),
    "Softsign": (_by(Fn.SOFTSIGN), ()),
    "Tanh": (_by(Fn.TANH), ()),
    "ThresholdedRelu": (_thresholded_relu, (1.0,)),
}
"""Each activation with the defaults of its alpha and beta (None if they must be given)."""

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

States = tuple[str | None, ...]


@dataclass(frozen=True)
class Direction:
    """One direction of a network: its number and its inputs, ``[steps, batch, size]``."""

    number: int
    x: str


Step = Callable[[int, States], tuple[str, ...]]
"""Computes new states from a time index and states (None: zeros); the first is the result."""

Masked = Callable[[int, States], tuple[str, tuple[str, ...]]]
"""Computes a result and new states."""


_MOST_STEPS = 2048
"""Each step is some kernel calls; planning those of so many takes about a minute."""

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _refuse_other_weights(ctx: NodeContext, directions: int) -> None:
    """Refuse weights that do not fit the data, which onnx's shape inference does not look at."""
    hidden = ctx.shape(2)[-1]
    rows = _GATES[ctx.node.op_type] * hidden
    expected = (directions, rows, ctx.shape(0)[-1]), (directions, rows, hidden)
    if (ctx.shape(1), ctx.shape(2)) != expected:
        raise Unsupported("W and R", f"their shapes must be {expected[0]} and {expected[1]}")


def run_directions(
    ctx: NodeContext, states: Sequence[int], stepper: Callable[[Direction], Step]
) -> tuple[str, ...]:
    """All results ``[steps, directions, batch, hidden]``, then each state after the last step.

    Args:
        states: Numbers of the operands that are initial states.
        stepper: Returns the function that computes a step of a direction.
    """
    directions = _directions(ctx)
    for operand in range(3):  # the data and both weights
        ctx.require_rank(operand, 3)
    _refuse_other_weights(ctx, len(directions))
    batch_first = ctx.attr("layout", 0) == 1
    x = ctx.transpose(ctx.input(0), (1, 0, 2)) if batch_first else ctx.input(0)
    length, batch, _ = ctx.builder.types[x].shape
    steps = ctx.number(length, "recurrent steps")
    if steps > _MOST_STEPS:
        raise Unsupported(
            f"{steps:,} recurrent steps",
            f"give parts of at most {_MOST_STEPS:,}, each with the last states as its initial ones",
        )
    lengths = _lengths(ctx, steps)
    hidden = ctx.shape(2)[-1]
    runs: list[tuple[Mapping[int, str], tuple[str, ...]]] = []
    for d, backwards in enumerate(directions):
        first = tuple(_initial(ctx, index, d, batch_first) for index in states)
        order = range(steps)[::-1] if backwards else range(steps)
        step = stepper(Direction(d, x))
        runs.append(
            _run(_whole(step) if lengths is None else _masked(ctx, step, lengths), first, order)
        )
    rows = [results[t] for t in range(steps) for results, _ in runs]
    y = joined(ctx, rows, (steps, len(runs), batch, hidden))
    finals = [
        joined(ctx, [last[n] for _, last in runs], (len(runs), batch, hidden))
        for n in range(len(states))
    ]
    if batch_first:
        y = ctx.transpose(y, (2, 0, 1, 3))
        finals = [ctx.transpose(value, (1, 0, 2)) for value in finals]
    return (y, *finals)


def _run(
    step: Masked, states: States, order: Sequence[int]
) -> tuple[Mapping[int, str], tuple[str, ...]]:
    """The result of each step, by time index, and the states after the last step."""
    results: dict[int, str] = {}
    last: tuple[str, ...] = ()
    for t in order:
        results[t], last = step(t, states)
        states = last
    return results, last


def _whole(step: Step) -> Masked:
    """*step*, whose result is its first state."""

    def stepped(t: int, states: States) -> tuple[str, tuple[str, ...]]:
        made = step(t, states)
        return made[0], made

    return stepped


def _directions(ctx: NodeContext) -> tuple[bool, ...]:
    """Whether each direction runs backwards."""
    direction = ctx.attr("direction", "forward")
    if direction not in _DIRECTIONS:
        raise Unsupported(f"direction={direction}", f"use one of {', '.join(_DIRECTIONS)}")
    return _DIRECTIONS[direction]


def _lengths(ctx: NodeContext, steps: int) -> str | None:
    """The length of each sequence, ``[batch, 1]``; None if all have all *steps*."""
    if not ctx.has_input(4):
        return None
    array = ctx.builder.constants.get(ctx.input(4))
    if array is not None and (array == steps).all():
        return None
    return ctx.reshape(ctx.cast(ctx.input(4), DType.INT32), (*ctx.shape(4), 1))


def _masked(ctx: NodeContext, step: Step, lengths: str) -> Masked:
    """*step* for sequences of different lengths: behind its end, a sequence keeps its states.

    The result there is 0.
    """

    def masked(t: int, states: States) -> tuple[str, tuple[str, ...]]:
        inside = ctx.apply(Fn.LESS, ctx.literal(t, DType.INT32), lengths)
        made = step(t, states)
        zero = ctx.literal(0)

        def chosen(new: str, old: str | None) -> str:
            return ctx.apply(Fn.WHERE, inside, new, zero if old is None else old)

        kept = tuple(chosen(new, old) for new, old in zip(made, states, strict=True))
        return chosen(made[0], None), kept

    return masked


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
        raise Unsupported(f"activations={given}", f"use {count} of {', '.join(_ACTIVATIONS)}")
    found: list[Activation] = []
    for name in given:
        fn, usual = known[name.lower()]
        params = tuple(next(v, u) for v, u in zip(left, usual, strict=False))
        numbers = tuple(float(p) for p in params if p is not None)
        if len(numbers) < len(usual):
            raise Unsupported(f"activations={given}", f"give alpha and beta of {name}")
        found.append(partial(fn, ctx, numbers))
    return tuple(found[count * d : count * (d + 1)])


def projected(ctx: NodeContext, direction: Direction, bias: str | None) -> str:
    """The inputs' part of all gates, ``[steps, batch, gates * hidden]``."""
    steps, batch, size = ctx.builder.types[direction.x].shape
    weight = ctx.transpose(row(ctx, ctx.input(1), direction.number), (1, 0))
    product = ctx.emit(MatMul(), [ctx.reshape(direction.x, (steps * batch, size)), weight])
    if bias is not None:
        product = ctx.apply(Fn.ADD, product, bias)
    return ctx.reshape(product, (steps, batch, ctx.builder.types[product].shape[-1]))


def bias_of(ctx: NodeContext, d: int) -> tuple[str, str] | None:
    """A direction's biases of the inputs' product and of the states' product, for all gates."""
    if not ctx.has_input(3):
        return None
    both = row(ctx, ctx.input(3), d)
    width = ctx.builder.types[both].shape[-1] // 2
    return part(ctx, both, 0, width), part(ctx, both, 1, width)


def clipped(ctx: NodeContext, value: str) -> str:
    """*value* clipped to the bounds that ``clip`` sets."""
    bound = float(ctx.attr("clip", 0.0))
    return ctx.apply(Fn.CLIP, value, params=(-bound, bound)) if bound > 0 else value


def row(ctx: NodeContext, value: str, place: int) -> str:
    """*value* at index *place* of its first axis, which is dropped."""
    shape = ctx.builder.types[value].shape
    return ctx.reshape(ctx.slice(value, {0: Cut(place, 1)}), shape[1:])


def part(ctx: NodeContext, value: str, k: int, width: int, count: int = 1) -> str:
    """Elements ``k * width`` to ``(k + count) * width`` of the last axis."""
    last = len(ctx.builder.types[value].shape) - 1
    return ctx.slice(value, {last: Cut(k * width, count * width)})


def joined(ctx: NodeContext, rows: Sequence[str], shape: Shape) -> str:
    """*rows* ``[batch, hidden]``, concatenated, as a tensor of *shape*."""
    stacked = rows[0] if len(rows) == 1 else ctx.emit(Concat(0), rows)
    return ctx.reshape(stacked, shape)
