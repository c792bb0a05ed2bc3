"""Random numbers and dropout: every draw follows from the seed and its position.

A model has no state, so each call draws the same numbers; iterations of a loop draw others each.
Without an attribute ``seed``, the name of the node's result is the seed.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from itertools import takewhile

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, dtype_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import (
    Cumulative,
    Expand,
    Fn,
    Reduce,
    ReduceKind,
    Shape,
    Uniform,
    UniformInLoop,
)
from ansorpy.graph.ops.random import key_of, start_of
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def _drawn(ctx: NodeContext, shape: Shape, stream: int = 0) -> str:
    """Draws from 0 to below 1, as float32; *stream* numbers the sequences that one node draws."""
    given: float | int | None = ctx.attr("seed", None)
    if given is None:
        seed = zlib.crc32(ctx.node.output[0].encode())
    elif given == int(given):
        seed = int(given)
    else:
        seed = int.from_bytes(struct.pack("<f", given), "little")
    numbers, constants = ctx.iterations, ctx.builder.constants
    known = list(takewhile(constants.__contains__, numbers))
    start, rest = start_of(int(constants[number]) for number in known), numbers[len(known) :]
    return ctx.emit((UniformInLoop if rest else Uniform)(shape, key_of(seed, stream), start), rest)


def _uniform(ctx: NodeContext, shape: Shape, dtype: DType) -> str:
    """Numbers from ``low`` to below ``high``."""
    low, high = float(ctx.attr("low", 0.0)), float(ctx.attr("high", 1.0))
    wide = DType.FLOAT32 if dtype.bits <= 32 else dtype
    drawn = ctx.cast(_drawn(ctx, shape), wide)
    scaled = ctx.apply(Fn.MUL, drawn, ctx.literal(high - low, wide))
    return ctx.cast(ctx.apply(Fn.ADD, scaled, ctx.literal(low, wide)), dtype)


def _normal(ctx: NodeContext, shape: Shape, dtype: DType) -> str:
    """Normally distributed numbers, from two draws each (Box and Muller)."""
    wide = DType.FLOAT32
    first, second = (_drawn(ctx, shape, stream) for stream in range(2))
    # 1 - u is above 0, so its logarithm is finite.
    left = ctx.apply(Fn.SUB, ctx.literal(1.0, wide), first)
    square = ctx.apply(Fn.MUL, ctx.apply(Fn.LOG, left), ctx.literal(-2.0, wide))
    angle = ctx.apply(Fn.MUL, second, ctx.literal(2 * math.pi, wide))
    value = ctx.apply(Fn.MUL, ctx.apply(Fn.SQRT, square), ctx.apply(Fn.COS, angle))
    mean, scale = float(ctx.attr("mean", 0.0)), float(ctx.attr("scale", 1.0))
    value = ctx.apply(Fn.MUL, value, ctx.literal(scale, wide))
    return ctx.cast(ctx.apply(Fn.ADD, value, ctx.literal(mean, wide)), dtype)


_Distribution = Callable[[NodeContext, Shape, DType], str]


def _of_shape(draw: _Distribution) -> Callable[[NodeContext], str]:
    """Draws of the shape that an attribute gives."""

    def build(ctx: NodeContext) -> str:
        dtype = _float_type(ctx, ctx.attr("dtype", 1))
        return draw(ctx, ctx.constant_shape(ctx.ints("shape", ()), dtype), dtype)

    return build


def _like(draw: _Distribution) -> Callable[[NodeContext], str]:
    """Draws of the shape of the operand."""

    def build(ctx: NodeContext) -> str:
        code: int = ctx.attr("dtype", 0)
        if not code:
            ctx.require_float()
        return draw(ctx, ctx.shape(), _float_type(ctx, code) if code else ctx.type().dtype)

    return build


def _float_type(ctx: NodeContext, code: int) -> DType:
    dtype = dtype_of(code)
    if not dtype.is_float:
        raise Unsupported(f"dtype={dtype.value}", "draw floats")
    return dtype


def bernoulli(ctx: NodeContext) -> str:
    """True with the probability that each element is."""
    ctx.require_float()
    code: int = ctx.attr("dtype", 0)
    dtype = dtype_of(code) if code else ctx.type().dtype
    likely = ctx.cast(ctx.input(), DType.FLOAT32)
    return ctx.cast(ctx.apply(Fn.LESS, _drawn(ctx, ctx.shape()), likely), dtype)


def multinomial(ctx: NodeContext) -> str:
    """Classes drawn with probabilities whose logarithms, up to a constant, are the elements.

    A draw is that class in which the running sum of probabilities passes it.
    """
    ctx.require_float()
    ctx.require_rank(0, 2)
    batch, classes = ctx.shape()
    count, wide = ctx.attr("sample_size", 1), DType.FLOAT32
    logits = ctx.cast(ctx.input(), wide)
    top = ctx.emit(Reduce(ReduceKind.MAX, (1,), True), [logits])
    weights = ctx.apply(Fn.EXP, ctx.apply(Fn.SUB, logits, top))
    sums = ctx.emit(Cumulative(ReduceKind.SUM, 1), [weights])
    total = ctx.slice(sums, {1: Cut(classes - 1, 1)})
    passed = ctx.apply(Fn.MUL, _drawn(ctx, (batch, count)), total)
    below = ctx.apply(
        Fn.LESS_EQUAL,
        ctx.reshape(sums, (batch, 1, classes)),
        ctx.reshape(passed, (batch, count, 1)),
    )
    # A product that is rounded up may equal the total.
    dtype = dtype_of(ctx.attr("dtype", 6))
    found = ctx.emit(Reduce(ReduceKind.SUM, (2,), False), [ctx.cast(below, DType.INT32)])
    last = ctx.cast(ctx.size(classes - 1, DType.INT64), DType.INT32)
    return ctx.cast(ctx.apply(Fn.MIN, found, last), dtype)


def dropout(ctx: NodeContext) -> tuple[str, ...]:
    """The input; in training, zeros with probability ``ratio`` and otherwise ``x / (1 - ratio)``.

    The second result tells which elements are kept: in inference, all.
    """
    training = ctx.opset >= 12 and ctx.has_input(2)
    mode = ctx.builder.constants.get(ctx.input(2)) if training else None
    if not training or (mode is not None and not mode.any()):
        return (ctx.input(), _all(ctx)) if ctx.is_output_used(1) else (ctx.input(),)
    ctx.require_float()
    wide = DType.FLOAT64 if ctx.type().dtype is DType.FLOAT64 else DType.FLOAT32
    ratio = ctx.cast(ctx.input(1), wide) if ctx.has_input(1) else ctx.literal(0.5, wide)
    ratio = ctx.reshape(ratio, ())
    if mode is None:
        flag = ctx.reshape(ctx.input(2), ())
        ratio = ctx.apply(Fn.WHERE, flag, ratio, ctx.literal(0.0, wide))
    drawn = ctx.cast(_drawn(ctx, ctx.shape()), wide)
    kept = ctx.apply(Fn.LESS_EQUAL, ratio, drawn)
    left = ctx.apply(Fn.SUB, ctx.literal(1.0, wide), ratio)
    scaled = ctx.cast(ctx.apply(Fn.DIV, ctx.cast(ctx.input(), wide), left), ctx.type().dtype)
    return ctx.apply(Fn.WHERE, kept, scaled, ctx.literal(0)), kept


def _all(ctx: NodeContext) -> str:
    """A mask that keeps all elements; before opset 10, it has the type of the data."""
    dtype = DType.BOOL if ctx.opset >= 10 else ctx.type().dtype
    return ctx.emit(Expand(ctx.shape()), [ctx.literal(1, dtype)])


OPERATORS: dict[str, Translate] = {
    "Bernoulli": bernoulli,
    "Dropout": dropout,
    "Multinomial": multinomial,
    "RandomNormal": _of_shape(_normal),
    "RandomNormalLike": _like(_normal),
    "RandomUniform": _of_shape(_uniform),
    "RandomUniformLike": _like(_uniform),
}
