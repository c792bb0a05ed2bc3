"""Steps of optimisers (``ai.onnx.preview.training``), each over any number of tensors."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn

__all__ = ["OPERATORS"]

_DOMAIN = "ai.onnx.preview.training"


def adagrad(ctx: NodeContext) -> tuple[str, ...]:
    """``x - r * g / (sqrt(h) + epsilon)``, where *h* sums the squares of gradients."""
    rate = _decayed(ctx, ctx.attr("decay_factor", 0.0))
    tensors, squares = [], []
    for x, g, h in _groups(ctx, 3):
        g = _regularised(ctx, g, x)
        h = ctx.apply(Fn.ADD, h, ctx.apply(Fn.MUL, g, g))
        tensors.append(_stepped(ctx, x, rate, _over_root(ctx, g, h)))
        squares.append(h)
    return (*tensors, *squares)


def adam(ctx: NodeContext) -> tuple[str, ...]:
    """``x - r * v / (sqrt(h) + epsilon)`` with running means of gradients and of their squares."""
    alpha, beta = ctx.attr("alpha", 0.9), ctx.attr("beta", 0.999)
    rate = _adam_rate(ctx, alpha, beta)
    made: list[tuple[str, str, str]] = []
    for x, g, v, h in _groups(ctx, 4):
        g = _regularised(ctx, g, x)
        v = _mixed(ctx, v, g, alpha)
        h = _mixed(ctx, h, ctx.apply(Fn.MUL, g, g), beta)
        x = _stepped(ctx, x, rate, _over_root(ctx, v, h))
        after = ctx.attr("norm_coefficient_post", 0.0)
        x = _times(ctx, x, 1.0 - after) if after else x
        made.append((x, v, h))
    return tuple(value for column in zip(*made, strict=True) for value in column)


def momentum(ctx: NodeContext) -> tuple[str, ...]:
    """``x - r * v`` or, with Nesterov's, ``x - r * (g + alpha * v)``, with a running sum *v*."""
    mode, alpha = ctx.attr("mode", "standard"), ctx.attr("alpha", 0.0)
    if mode not in ("standard", "nesterov"):
        raise Unsupported(f"mode={mode}", "use standard or nesterov")
    tensors, sums = [], []
    for x, g, v in _groups(ctx, 3):
        g = _regularised(ctx, g, x)
        v = ctx.apply(Fn.ADD, _times(ctx, v, alpha), _first_or(ctx, g, ctx.attr("beta", 1.0)))
        step = v if mode == "standard" else ctx.apply(Fn.ADD, g, _times(ctx, v, alpha))
        tensors.append(_stepped(ctx, x, ctx.input(0), step))
        sums.append(v)
    return (*tensors, *sums)


def _groups(ctx: NodeContext, parts: int) -> list[tuple[str, ...]]:
    """Each tensor with its gradient and states, *parts* in all; parts of a kind come together."""
    rest = len(ctx.inputs) - 2
    if rest <= 0 or rest % parts:
        raise Unsupported(f"{len(ctx.inputs)} inputs", "give each tensor its gradient and state")
    count = rest // parts
    return [tuple(ctx.input(2 + part * count + n) for part in range(parts)) for n in range(count)]


def _decayed(ctx: NodeContext, decay: float) -> str:
    """The learning rate, ``R / (1 + T * decay)``."""
    rate = ctx.input(0)
    if not decay:
        return rate
    dtype = ctx.type_of(rate).dtype
    spent = ctx.apply(Fn.MUL, ctx.cast(ctx.input(1), dtype), ctx.literal(decay, dtype))
    return ctx.apply(Fn.DIV, rate, ctx.apply(Fn.ADD, spent, ctx.literal(1.0, dtype)))


def _adam_rate(ctx: NodeContext, alpha: float, beta: float) -> str:
    """The learning rate, corrected for the means' start at 0 unless this is step 0."""
    rate = ctx.input(0)
    dtype = ctx.type_of(rate).dtype
    step = ctx.cast(ctx.input(1), dtype)
    one = ctx.literal(1.0, dtype)

    def left(base: float) -> str:
        return ctx.apply(Fn.SUB, one, ctx.apply(Fn.POW, ctx.literal(base, dtype), step))

    corrected = ctx.apply(
        Fn.DIV, ctx.apply(Fn.MUL, rate, ctx.apply(Fn.SQRT, left(beta))), left(alpha)
    )
    begun = ctx.apply(Fn.LESS, ctx.literal(0.0, dtype), step)
    return ctx.apply(Fn.WHERE, begun, corrected, rate)


def _first_or(ctx: NodeContext, gradient: str, beta: float) -> str:
    """*gradient*, times *beta* unless this is step 0."""
    if beta == 1.0:
        return gradient
    dtype = ctx.type_of(gradient).dtype
    begun = ctx.apply(Fn.LESS, ctx.literal(0, ctx.type_of(ctx.input(1)).dtype), ctx.input(1))
    factor = ctx.apply(Fn.WHERE, begun, ctx.literal(beta, dtype), ctx.literal(1.0, dtype))
    return ctx.apply(Fn.MUL, gradient, factor)


def _regularised(ctx: NodeContext, gradient: str, x: str) -> str:
    share: float = ctx.attr("norm_coefficient", 0.0)
    return ctx.apply(Fn.ADD, gradient, _times(ctx, x, share)) if share else gradient


def _mixed(ctx: NodeContext, old: str, new: str, share: float) -> str:
    """``share * old + (1 - share) * new``."""
    rest = float(np.float32(1.0) - np.float32(share))
    return ctx.apply(Fn.ADD, _times(ctx, old, share), _times(ctx, new, rest))


def _times(ctx: NodeContext, value: str, factor: float) -> str:
    return ctx.apply(Fn.MUL, value, ctx.literal(factor, ctx.type_of(value).dtype))


def _over_root(ctx: NodeContext, value: str, squares: str) -> str:
    """``value / (sqrt(squares) + epsilon)``."""
    root = ctx.apply(Fn.SQRT, squares)
    epsilon = ctx.literal(ctx.attr("epsilon", 1e-6), ctx.type_of(root).dtype)
    return ctx.apply(Fn.DIV, value, ctx.apply(Fn.ADD, root, epsilon))


def _stepped(ctx: NodeContext, x: str, rate: str, step: str) -> str:
    dtype = ctx.type_of(x).dtype
    return ctx.apply(Fn.SUB, x, ctx.apply(Fn.MUL, ctx.cast(rate, dtype), step))


OPERATORS: dict[str, Translate] = {
    f"{_DOMAIN}.Adagrad": adagrad,
    f"{_DOMAIN}.Adam": adam,
    f"{_DOMAIN}.Momentum": momentum,
}
