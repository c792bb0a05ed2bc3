"""Activations and other elementwise functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.graph.ops import Fn

__all__ = ["OPERATORS", "SELU", "above", "gelu_of"]

Importer = Callable[[NodeContext], str]

SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""The usual ``alpha`` and ``gamma`` of Selu."""


def _unary(fn: Fn, **defaults: float) -> Importer:
    """An importer for ``fn``; *defaults* are its float attributes, in the order of ``params``."""

    def build(ctx: NodeContext) -> str:
        params = tuple(float(ctx.attr(name, value)) for name, value in defaults.items())
        return ctx.apply(fn, ctx.input(), params=params)

    return build


def clip(ctx: NodeContext) -> str:
    """Clip to bounds, which are attributes before opset 11 and optional inputs since then."""
    if ctx.opset < 11:
        largest = float(np.finfo(np.float32).max) if ctx.opset > 5 else math.inf
        low, high = ctx.attr("min", -largest), ctx.attr("max", largest)
        return ctx.apply(Fn.CLIP, ctx.input(), params=(float(low), float(high)))
    result = ctx.input()
    for index, fn in ((1, Fn.MAX), (2, Fn.MIN)):
        if ctx.has_input(index):
            result = ctx.apply(fn, result, ctx.input(index))
    return result


def prelu(ctx: NodeContext) -> str:
    """``x`` where it is positive, otherwise ``slope * x``."""
    return ctx.apply(Fn.PRELU, ctx.input(0), ctx.input(1))


def hard_swish(ctx: NodeContext) -> str:
    """``x * max(0, min(1, x / 6 + 1/2))``."""
    gate = ctx.apply(Fn.HARD_SIGMOID, ctx.input(), params=(1 / 6, 0.5))
    return ctx.apply(Fn.MUL, ctx.input(), gate)


def gelu(ctx: NodeContext) -> str:
    """``x * (1 + erf(x / sqrt(2))) / 2``, or its approximation by ``tanh``."""
    return gelu_of(ctx, ctx.input(), ctx.attr("approximate", "none"))


def gelu_of(ctx: NodeContext, x: str, kind: str) -> str:
    """The gelu of *x*: exact if *kind* is ``none``, or its approximation by ``tanh``."""
    if kind == "none":
        inner = ctx.apply(Fn.ERF, ctx.apply(Fn.MUL, x, ctx.literal(math.sqrt(0.5))))
    elif kind == "tanh":
        cube = ctx.apply(Fn.MUL, ctx.apply(Fn.POW, x, ctx.literal(3.0)), ctx.literal(0.044715))
        slope = ctx.literal(math.sqrt(2 / math.pi))
        inner = ctx.apply(Fn.TANH, ctx.apply(Fn.MUL, ctx.apply(Fn.ADD, x, cube), slope))
    else:
        raise Unsupported(f"approximate={kind}", "use none or tanh")
    gate = ctx.apply(Fn.MUL, ctx.apply(Fn.ADD, inner, ctx.literal(1.0)), ctx.literal(0.5))
    return ctx.apply(Fn.MUL, x, gate)


def mish(ctx: NodeContext) -> str:
    """``x * tanh(log(1 + exp(x)))``."""
    return ctx.apply(Fn.MUL, ctx.input(), ctx.apply(Fn.TANH, ctx.apply(Fn.SOFTPLUS, ctx.input())))


def swish(ctx: NodeContext) -> str:
    """``x * sigmoid(alpha * x)``."""
    x, alpha = ctx.input(), float(ctx.attr("alpha", 1.0))
    scaled = x if alpha == 1.0 else ctx.apply(Fn.MUL, x, ctx.literal(alpha))
    return ctx.apply(Fn.MUL, x, ctx.apply(Fn.SIGMOID, scaled))


def swiglu(ctx: NodeContext) -> str:
    """``a * sigmoid(alpha * a) * b``."""
    return ctx.apply(Fn.MUL, swish(ctx), ctx.input(1))


def thresholded_relu(ctx: NodeContext) -> str:
    """``x`` where it is greater than ``alpha``, otherwise 0."""
    return above(ctx, ctx.input(), float(ctx.attr("alpha", 1.0)))


def above(ctx: NodeContext, x: str, limit: float) -> str:
    """*x* where it is greater than *limit*, otherwise 0."""
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, ctx.literal(limit), x), x, ctx.literal(0))


def shrink(ctx: NodeContext) -> str:
    """``x`` moved towards zero by ``bias``, or 0 where ``|x| <= lambd``."""
    ctx.require_float()
    x, limit, bias = ctx.input(), float(ctx.attr("lambd", 0.5)), float(ctx.attr("bias", 0.0))
    below, above = (ctx.apply(Fn.ADD, x, ctx.literal(b)) if bias else x for b in (bias, -bias))
    inner = ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, ctx.literal(limit), x), above, ctx.literal(0))
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, x, ctx.literal(-limit)), below, inner)


OPERATORS: dict[str, Importer] = {
    "Abs": _unary(Fn.ABS),
    "Ceil": _unary(Fn.CEIL),
    "Celu": _unary(Fn.CELU, alpha=1.0),
    "Clip": clip,
    "Elu": _unary(Fn.ELU, alpha=1.0),
    "Erf": _unary(Fn.ERF),
    "Exp": _unary(Fn.EXP),
    "Floor": _unary(Fn.FLOOR),
    "Gelu": gelu,
    "HardSigmoid": _unary(Fn.HARD_SIGMOID, alpha=0.2, beta=0.5),
    "HardSwish": hard_swish,
    "LeakyRelu": _unary(Fn.LEAKY_RELU, alpha=0.01),
    "Log": _unary(Fn.LOG),
    "Mish": mish,
    "Neg": _unary(Fn.NEG),
    "PRelu": prelu,
    "Reciprocal": _unary(Fn.RECIPROCAL),
    "Relu": _unary(Fn.RELU),
    "Selu": _unary(Fn.SELU, alpha=SELU[0], gamma=SELU[1]),
    "Shrink": shrink,
    "Sigmoid": _unary(Fn.SIGMOID),
    "SwiGLU": swiglu,
    "Softplus": _unary(Fn.SOFTPLUS),
    "Softsign": _unary(Fn.SOFTSIGN),
    "Sqrt": _unary(Fn.SQRT),
    "Swish": swish,
    "Tanh": _unary(Fn.TANH),
    "ThresholdedRelu": thresholded_relu,
}
