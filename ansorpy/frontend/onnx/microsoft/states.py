"""Convolutions over texts that continue what an earlier call has seen."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported
from ansorpy.frontend.onnx.microsoft.domain import Importer, in_domain
from ansorpy.frontend.onnx.operators.windows import biased
from ansorpy.graph.ops import Conv, Expand, Fn, TensorType

__all__ = ["OPERATORS"]


def causal_conv_with_state(ctx: NodeContext) -> tuple[str, str]:
    """Each channel convolved with its own kernel over the places up to each one, and the last of
    these places, which are the state before the next call.

    Channels are the axis before the places, or all axes behind them.
    """
    for name, usual in (("ndim", 1), ("state_window", 0)):
        if ctx.attr(name, usual) != usual:
            raise Unsupported(f"{name}={ctx.attr(name, usual)}", f"use {usual}")
    shape, dtype = ctx.shape(), ctx.type().dtype
    x = ctx.input(0)
    batch, last = shape[0], bool(ctx.attr("channels_last", 0))
    places = shape[1] if last else shape[2]
    channels, _, kernel = ctx.shape(1)
    step = ctx.attr("dilation", 1)
    before = (ctx.number(kernel, "a kernel") - 1) * step
    if ctx.has_input(3):
        past = _with_places_last(ctx, ctx.input(3), last)
    elif before:
        zero = ctx.literal(np.zeros((1, 1, 1)), dtype)
        past = ctx.emit(Expand((batch, channels, before)), [zero])
    else:
        past = ctx.builder.add_empty(ctx.node.output[0], TensorType((batch, channels, 0), dtype))
    whole = ctx.concat([past, _with_places_last(ctx, x, last)], 2)
    op = Conv((1,), (0,), (0,), (step,), ctx.number(channels, "channels"))
    made = biased(ctx, ctx.emit(op, [whole, ctx.input(1)]), channels)
    name = ctx.attr("activation", "none")
    if name not in ("none", "silu", "swish"):
        raise Unsupported(f"activation={name}", "use none, silu or swish")
    if name != "none":
        made = ctx.apply(Fn.MUL, made, ctx.apply(Fn.SIGMOID, made))
    state = ctx.slice(whole, {2: Cut(places, before)}) if before else past
    if not last:
        return made, state
    rest = shape[2:]
    return (
        ctx.reshape(ctx.transpose(made, (0, 2, 1)), shape),
        ctx.reshape(ctx.transpose(state, (0, 2, 1)), (batch, before, *rest)),
    )


def _with_places_last(ctx: NodeContext, value: str, last: bool) -> str:
    """*value* as ``[batch, channels, places]``; its channels are *last* or before the places."""
    if not last:
        return value
    batch, places, *_ = ctx.builder.types[value].shape
    flat = ctx.reshape(value, (batch, places, ctx.shape(1)[0]))
    return ctx.transpose(flat, (0, 2, 1))


OPERATORS: dict[str, Importer] = in_domain({"CausalConvWithState": causal_conv_with_state})
