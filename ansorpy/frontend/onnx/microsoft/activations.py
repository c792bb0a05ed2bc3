"""Activations, alone, behind a bias, or behind a product or convolution."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.operators.activation import (
    ACTIVATIONS,
    SELU,
    Parametrised,
    by,
    gelu_of,
    hard_swish_of,
    swish_of,
)
from ansorpy.frontend.onnx.operators.conv import conv
from ansorpy.frontend.onnx.operators.matmul import gemm, product
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, MatMul
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def gelu(ctx: NodeContext) -> str:
    """``gelu(x + bias)`` by the error function."""
    return gelu_of(ctx, ctx.plus(ctx.input(), 1), "none")


def fast_gelu(ctx: NodeContext) -> str:
    """``gelu(x + bias)``, approximated by the hyperbolic tangent."""
    return gelu_of(ctx, ctx.plus(ctx.input(), 1), "tanh")


def quick_gelu(ctx: NodeContext) -> str:
    """``x * sigmoid(alpha * x)``."""
    return swish_of(ctx, ctx.input(), float(ctx.attr("alpha", 1.702)))


_ACTIVATIONS: Mapping[str, tuple[Parametrised, tuple[float, ...]]] = {
    **ACTIVATIONS,
    "Clip": (by(Fn.CLIP), (-math.inf, math.inf)),
    "HardSwish": (lambda ctx, _, x: hard_swish_of(ctx, x), ()),
    "Selu": (by(Fn.SELU), SELU),
}
"""Functions behind fused operators, and the parameters that they have if none are given."""


def _activated(ctx: NodeContext, value: str, given: tuple[float, ...]) -> str:
    name = ctx.attr("activation", "")
    if not name:
        return value
    if name not in _ACTIVATIONS:
        raise Unsupported(f"activation={name}", f"use one of {', '.join(sorted(_ACTIVATIONS))}")
    activation, usual = _ACTIVATIONS[name]
    return activation(ctx, (*given, *usual[len(given) :])[: len(usual)], value)


def fused_conv(ctx: NodeContext) -> str:
    """A convolution, plus an operand of the result's shape, and an activation."""
    value = ctx.plus(conv(ctx), 3)
    return _activated(ctx, value, tuple(map(float, ctx.attr("activation_params", ()))))


def fused_gemm(ctx: NodeContext) -> str:
    """``activation(alpha * A' B' + beta * C)``."""
    return _activated(ctx, gemm(ctx), _parameters(ctx))


def fused_matmul_activation(ctx: NodeContext) -> str:
    """The activation of a product as of FusedMatMul."""
    return _activated(ctx, fused_matmul(ctx), _parameters(ctx))


def _parameters(ctx: NodeContext) -> tuple[float, ...]:
    """The parameters of the activation, of which each is an attribute."""
    name = ctx.attr("activation", "")
    names = ("alpha", "gamma") if name == "Selu" else ("alpha", "beta")
    _, usual = _ACTIVATIONS.get(name, (None, ()))
    given = zip(names, usual, strict=False)
    return tuple(float(ctx.attr(f"activation_{key}", value)) for key, value in given)


def gemm_fast_gelu(ctx: NodeContext) -> str:
    """``gelu(X W + bias)``, approximated by the hyperbolic tangent."""
    value = ctx.emit(MatMul(), [ctx.input(0), ctx.input(1)])
    return gelu_of(ctx, ctx.plus(value, 2), "tanh")


def bias_add(ctx: NodeContext) -> str:
    """``x + bias + skip``."""
    return ctx.apply(Fn.ADD, ctx.plus(ctx.input(), 1), ctx.input(2))


def fused_matmul(ctx: NodeContext) -> str:
    """``alpha * A' B'``, where matrices, or batches of them and their rows, are transposed."""
    a, b = (
        _turned(ctx, n, bool(ctx.attr(f"trans{name}", 0)), bool(ctx.attr(f"transBatch{name}", 0)))
        for n, name in enumerate("AB")
    )
    value = product(ctx, a, b)
    alpha = float(ctx.attr("alpha", 1.0))
    return value if alpha == 1.0 else ctx.apply(Fn.MUL, value, ctx.literal(alpha))


def _turned(ctx: NodeContext, index: int, matrix: bool, batch: bool) -> str:
    """Operand *index* with its first axis moved behind the batch's, and its matrices transposed."""
    order = list(range(len(ctx.shape(index))))
    if len(order) < 2:
        return ctx.input(index)
    if batch:
        order = [*order[1:-1], 0, order[-1]]
    if matrix:
        order[-2:] = order[:-3:-1]
    return ctx.transpose(ctx.input(index), tuple(order))


def gated_add(ctx: NodeContext) -> str:
    """``x + y * gate``, where each row has one gate."""
    return ctx.apply(Fn.ADD, ctx.input(0), ctx.apply(Fn.MUL, ctx.input(1), ctx.input(2)))


def linear_attention_gate(ctx: NodeContext) -> tuple[str, ...]:
    """``scale * log(1 + exp(a + bias))``, and the sigmoid of *b*, computed in float32."""
    dtype = ctx.type().dtype
    moved = ctx.apply(Fn.ADD, ctx.cast(ctx.input(0), DType.FLOAT32), ctx.input(1))
    decay = ctx.cast(ctx.apply(Fn.MUL, ctx.input(2), ctx.apply(Fn.SOFTPLUS, moved)), dtype)
    if not ctx.has_input(3):
        return (decay,)
    rate = ctx.apply(Fn.SIGMOID, ctx.cast(ctx.input(3), DType.FLOAT32))
    return decay, ctx.cast(rate, dtype)


def bias_split_gelu(ctx: NodeContext) -> str:
    """The first half of the columns of ``x + bias`` times the gelu of the second half."""
    value = ctx.plus(ctx.input(), 1)
    *lead, columns = ctx.type_of(value).shape
    half = ctx.number(columns, "two halves") // 2
    first, second = (ctx.slice(value, {len(lead): Cut(n * half, half)}) for n in (0, 1))
    return ctx.apply(Fn.MUL, first, gelu_of(ctx, second, "none"))


OPERATORS: dict[str, Translate] = {
    "BiasAdd": bias_add,
    "BiasGelu": gelu,
    "BiasSplitGelu": bias_split_gelu,
    "FastGelu": fast_gelu,
    "FusedConv": fused_conv,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "FusedMatMulActivation": fused_matmul_activation,
    "GatedAdd": gated_add,
    "Gelu": gelu,
    "GemmFastGelu": gemm_fast_gelu,
    "LinearAttentionGate": linear_attention_gate,
    "QuickGelu": quick_gelu,
}
