"""Activations and other elementwise functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.operators.elementwise import function
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn

__all__ = [
    "ACTIVATIONS", "OPERATORS", "SELU", "Parametrised", "by", "gelu_of", "hard_swish_of",
    "swish_of",
]  # fmt: skip

Parametrised = Callable[[NodeContext, tuple[float, ...], str], str]
"""An activation that has parameters, applied to them and a value."""

SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""The usual ``alpha`` and ``gamma`` of Selu."""


def by(fn: Fn) -> Parametrised:
    """The activation that is the function ``fn``."""
    return lambda ctx, params, x: ctx.apply(fn, x, params=params)


def _thresholded_relu(ctx: NodeContext, params: tuple[float, ...], x: str) -> str:
    """*x* where it is greater than the only parameter, otherwise 0."""
    (limit,) = params
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, ctx.literal(limit), x), x, ctx.literal(0))


ACTIVATIONS: Mapping[str, tuple[Parametrised, tuple[float, ...]]] = {
    "Elu": (by(Fn.ELU), (1.0,)),
    "HardSigmoid": (by(Fn.HARD_SIGMOID), (0.2, 0.5)),
    "LeakyRelu": (by(Fn.LEAKY_RELU), (0.01,)),
    "Relu": (by(Fn.RELU), ()),
    "Sigmoid": (by(Fn.SIGMOID), ()),
    "Softplus": (by(Fn.SOFTPLUS), ()),
    "Softsign": (by(Fn.SOFTSIGN), ()),
    "Tanh": (by(Fn.TANH), ()),
    "ThresholdedRelu": (_thresholded_relu, (1.0,)),
}
"""Activations that recurrent and fused operators name, too, with the usual ``alpha``, ``beta``."""


def _alone(activation: Parametrised, **usual: float) -> Translate:
    """An importer for *activation*, whose parameters are attributes with these *usual* values."""

    def build(ctx: NodeContext) -> str:
        params = tuple(float(ctx.attr(name, value)) for name, value in usual.items())
        return activation(ctx, params, ctx.input())

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


def hard_swish_of(ctx: NodeContext, x: str) -> str:
    """``x * max(0, min(1, x / 6 + 1/2))``."""
    return ctx.apply(Fn.MUL, x, ctx.apply(Fn.HARD_SIGMOID, x, params=(1 / 6, 0.5)))


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
    return swish_of(ctx, ctx.input(), float(ctx.attr("alpha", 1.0)))


def swish_of(ctx: NodeContext, x: str, alpha: float = 1.0) -> str:
    """``x * sigmoid(alpha * x)``."""
    scaled = x if alpha == 1.0 else ctx.apply(Fn.MUL, x, ctx.literal(alpha))
    return ctx.apply(Fn.MUL, x, ctx.apply(Fn.SIGMOID, scaled))


def swiglu(ctx: NodeContext) -> str:
    """``a * sigmoid(alpha * a) * b``."""
    return ctx.apply(Fn.MUL, swish(ctx), ctx.input(1))


def shrink(ctx: NodeContext) -> str:
    """``x`` moved towards zero by ``bias``, or 0 where ``|x| <= lambd``."""
    ctx.require_float()
    x, limit, bias = ctx.input(), float(ctx.attr("lambd", 0.5)), float(ctx.attr("bias", 0.0))
    below, above = (ctx.apply(Fn.ADD, x, ctx.literal(b)) if bias else x for b in (bias, -bias))
    inner = ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, ctx.literal(limit), x), above, ctx.literal(0))
    return ctx.apply(Fn.WHERE, ctx.apply(Fn.LESS, x, ctx.literal(-limit)), below, inner)


OPERATORS: dict[str, Translate] = {
    **{
        name: _alone(activation, **dict(zip(("alpha", "beta"), usual, strict=False)))
        for name, (activation, usual) in ACTIVATIONS.items()
    },
    "Abs": function(Fn.ABS, 0),
    "Ceil": function(Fn.CEIL, 0),
    "Celu": _alone(by(Fn.CELU), alpha=1.0),
    "Clip": clip,
    "Erf": function(Fn.ERF, 0),
    "Exp": function(Fn.EXP, 0),
    "Floor": function(Fn.FLOOR, 0),
    "Gelu": gelu,
    "HardSwish": lambda ctx: hard_swish_of(ctx, ctx.input()),
    "Log": function(Fn.LOG, 0),
    "Mish": mish,
    "Neg": function(Fn.NEG, 0),
    "PRelu": function(Fn.PRELU, 0, 1),
    "Reciprocal": function(Fn.RECIPROCAL, 0),
    "Selu": _alone(by(Fn.SELU), alpha=SELU[0], gamma=SELU[1]),
    "Shrink": shrink,
    "Sqrt": function(Fn.SQRT, 0),
    "Swish": swish,
    "SwiGLU": swiglu,
}
