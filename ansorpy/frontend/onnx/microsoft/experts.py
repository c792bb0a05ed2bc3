"""Mixtures of experts: each row passes through the few of several networks that a router chooses.

Rows are collected by the expert that they go to, in blocks of which each has one expert, so that
the weights of an expert are read once for many rows.  Of few rows, each is a block of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.microsoft.weights import bits_of, codes_of, dequantized, unpacked
from ansorpy.frontend.onnx.operators.activation import gelu_of, swish_of
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import (
    ChosenMatMul,
    Computed,
    Cumulative,
    Fn,
    Gather,
    GatherElements,
    Reduce,
    ReduceKind,
    Softmax,
)
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, extreme, most, prod_of
from ansorpy.ir.routines.places import Inverse
from ansorpy.ir.routines.top import TopPlaces
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS"]

_MOST_IN_BLOCK = 16
"""Rows of a block; more of them read weights less often, but leave more places empty."""


@dataclass(frozen=True)
class _Layer:
    """Weights ``[experts, rows, columns]`` and biases ``[experts, columns]``; None for none."""

    weight: str
    bias: str | None


def moe(ctx: NodeContext) -> str:
    """Experts with weights of floats; the router's softmax is one over all experts."""
    layers = [_plain(ctx, n) for n in (2, 4, 6) if ctx.has_input(n)]
    choice = _routed(ctx)
    if ctx.attr("normalize_routing_weights", 0):
        share = _normalised(ctx, choice)
    else:
        share = _of_chosen(ctx, ctx.emit(Softmax((1,)), [ctx.input(1)]), choice)
    return _mixed(ctx, layers, choice, share)


def qmoe(ctx: NodeContext) -> str:
    """Experts with weights of few bits; the softmax is one over those that are chosen."""
    kind = ctx.attr("quant_type", "int")
    if kind != "int":
        raise Unsupported(f"quant_type={kind}", "quantize to integers")
    if ctx.attr("weights_prepacked", -1) > 0:
        raise Unsupported("weights_prepacked=1", "store the weights as they are quantized")
    if any(ctx.has_input(n) for n in range(15, len(ctx.node.input))):
        raise Unsupported("fc1_global_scale and what follows it", "quantize to integers")
    layers = [_packed(ctx, n) for n in range(3) if ctx.has_input(2 + 3 * n)]
    choice = _routed(ctx)
    if not ctx.has_input(14):
        share = _normalised(ctx, choice)
    else:
        share = _of_chosen(ctx, ctx.input(14), choice)
        if ctx.attr("normalize_routing_weights", 0):
            total = ctx.emit(Reduce(ReduceKind.SUM, (1,), True), [share])
            share = ctx.apply(Fn.DIV, share, total)
    return _mixed(ctx, layers, choice, share)


def _plain(ctx: NodeContext, operand: int) -> _Layer:
    bias = ctx.input(operand + 1) if ctx.has_input(operand + 1) else None
    return _Layer(ctx.transpose(ctx.input(operand), (0, 2, 1)), bias)


def _packed(ctx: NodeContext, number: int) -> _Layer:
    """A layer of which operands are weights, scales and biases, and further ones zero points."""
    first, zero, own = 2 + 3 * number, 11 + number, f"fc{number + 1}_expert_weight_bits"
    bits = bits_of(ctx, own if ctx.attr(own, 0) > 0 else "expert_weight_bits")
    held = unpacked(ctx.constant(first, "weights"), bits)
    count, columns, rows = held.shape
    codes = codes_of(ctx, held, bits)
    has_blocks = len(ctx.shape(first + 1)) == 3
    blocks = ctx.number(ctx.shape(first + 1)[2], "blocks") if has_blocks else 1
    scales = ctx.reshape(ctx.input(first + 1), (count, columns, blocks))
    zeros = None
    if ctx.has_input(zero):
        # Those of blocks are packed along a row's blocks, others along columns.
        stored = unpacked(ctx.constant(zero, "zero points"), bits)
        stored = stored[..., :blocks] if has_blocks else stored[..., :columns]
        zeros = ctx.literal(stored.reshape(count, columns, blocks), DType.UINT8)
    weight = dequantized(ctx, codes, scales, zeros, 2, -(-rows // blocks), 1 << (bits - 1))
    bias = ctx.input(first + 2) if ctx.has_input(first + 2) else None
    return _Layer(ctx.transpose(weight, (0, 2, 1)), bias)


def _routed(ctx: NodeContext) -> str:
    """The experts with the largest of the router's scores, ``[rows, k]``."""
    if ctx.attr("use_sparse_mixer", 0):
        raise Unsupported("use_sparse_mixer=1", "route by the largest scores")
    ctx.require_rank(1, 2)
    rows, _ = ctx.shape(1)
    k = ctx.attr("k", 1)
    top = Computed(TopPlaces(largest=True), (rows, k), DType.INT64)
    return ctx.emit(top, [ctx.input(1)])


def _of_chosen(ctx: NodeContext, values: str, choice: str) -> str:
    return ctx.emit(GatherElements(1), [values, choice])


def _normalised(ctx: NodeContext, choice: str) -> str:
    """The softmax of the router's scores of the experts that are chosen."""
    return ctx.emit(Softmax((1,)), [_of_chosen(ctx, ctx.input(1), choice)])


def _mixed(ctx: NodeContext, layers: list[_Layer], choice: str, share: str) -> str:
    """The results of the experts that are the *choice* of each row, each times its *share*."""
    *lead, width = ctx.shape()
    rows, k = prod_of(lead), ctx.attr("k", 1)
    flat = ctx.reshape(ctx.input(), (rows, width))
    blocks = _blocks(ctx, ctx.reshape(choice, (rows * k,)), ctx.shape(1)[1])
    given = ctx.emit(Gather(0), [flat, _over(ctx, blocks.routes, k)])
    found = _network(ctx, layers, given, blocks.expert)
    found = ctx.reshape(found, (prod_of(ctx.type_of(found).shape[:2]), width))
    if blocks.place is not None:
        found = ctx.emit(Gather(0), [found, blocks.place])
    found = ctx.reshape(found, (rows, k, width))
    weighed = ctx.apply(Fn.MUL, found, ctx.reshape(share, (rows, k, 1)))
    return ctx.reshape(ctx.emit(Reduce(ReduceKind.SUM, (1,), False), [weighed]), (*lead, width))


@dataclass(frozen=True)
class _Blocks:
    """Routes, which are pairs of a row and an expert of it, in blocks of one expert each.

    Args:
        routes: ``[blocks, rows of a block]``: the route at each place; any, where there is none.
        expert: ``[blocks]``.
        place: Where each route is among the places; None if these are the routes in order.
    """

    routes: str
    expert: str
    place: str | None


def _blocks(ctx: NodeContext, expert: str, experts: AnyExtent) -> _Blocks:
    """Blocks of the routes to *expert*."""
    (routes,) = ctx.type_of(expert).shape
    experts = ctx.number(experts, "experts")
    size = _rows_of_block(most(routes) // experts)
    if size == 1:
        return _Blocks(ctx.reshape(ctx.places(routes), (routes, 1)), expert, None)

    def number(value: AnyExtent) -> str:
        return ctx.size(value, DType.INT64)

    sorted_ = Computed(TopPlaces(largest=False), (1, routes), DType.INT64)
    order = ctx.reshape(ctx.emit(sorted_, [ctx.reshape(expert, (1, routes))]), (routes,))
    is_own = ctx.apply(Fn.EQUAL, ctx.reshape(expert, (routes, 1)), ctx.places(experts))
    counts = ctx.emit(Reduce(ReduceKind.SUM, (0,), False), [ctx.cast(is_own, DType.INT64)])
    needed = ctx.apply(Fn.DIV, ctx.apply(Fn.ADD, counts, number(size - 1)), number(size))
    ends = ctx.emit(Cumulative(ReduceKind.SUM, 0), [needed])
    first = ctx.emit(Cumulative(ReduceKind.SUM, 0, exclusive=True), [counts])
    # An expert's last block has at least one route, so there are at most so many blocks.
    busy = extreme(SizeOp.MIN, routes, experts)
    blocks = busy + (routes - busy) // size
    before = ctx.apply(Fn.LESS_EQUAL, ends, ctx.places(blocks, 1))
    which = ctx.emit(Reduce(ReduceKind.SUM, (1,), False), [ctx.cast(before, DType.INT64)])
    which = ctx.apply(Fn.MIN, which, number(experts - 1))
    begins = ctx.apply(Fn.SUB, ends, needed)

    def of(values: str, chosen: str) -> str:
        return ctx.emit(Gather(0), [values, chosen])

    # A block's routes follow each other in the order by experts, from its first one on.
    start = ctx.apply(Fn.SUB, ctx.places(blocks), of(begins, which))
    start = ctx.apply(Fn.ADD, ctx.apply(Fn.MUL, start, number(size)), of(first, which))
    at = ctx.apply(Fn.ADD, ctx.reshape(start, (blocks, 1)), ctx.places(size))
    at = ctx.apply(Fn.MIN, at, number(routes - 1))
    rank = ctx.emit(Computed(Inverse(), (routes,), DType.INT64), [order])
    behind = ctx.apply(Fn.SUB, ctx.apply(Fn.MUL, begins, number(size)), first)
    return _Blocks(of(order, at), which, ctx.apply(Fn.ADD, rank, of(behind, expert)))


def _rows_of_block(each: int) -> int:
    """How many rows a block has if experts have *each* on average: a power of two.

    It is at most half of them, because the last block of each expert is half empty on average.
    """
    return 1 << (min(max(each // 2, 1), _MOST_IN_BLOCK).bit_length() - 1)


def _over(ctx: NodeContext, value: str, divisor: int) -> str:
    return ctx.apply(Fn.DIV, value, ctx.literal(divisor, DType.INT64)) if divisor > 1 else value


def _network(ctx: NodeContext, layers: list[_Layer], rows: str, expert: str) -> str:
    """Blocks of *rows* through the first layer, the third one if it is there, and the second."""
    inner, outer, *gated = layers
    found = _layer(ctx, inner, rows, expert)
    linear = [_layer(ctx, layer, rows, expert) for layer in gated]
    name = ctx.attr("activation_type", "relu")
    if name == "swiglu":
        found = _swiglu(ctx, *(linear and [found, *linear] or _halves(ctx, found)))
    elif name in _ACTIVATIONS:
        found = _ACTIVATIONS[name](ctx, found)
        found = ctx.apply(Fn.MUL, found, linear[0]) if linear else found
    else:
        known = ", ".join([*_ACTIVATIONS, "swiglu"])
        raise Unsupported(f"activation_type={name}", f"use one of {known}")
    return _layer(ctx, outer, found, expert)


def _layer(ctx: NodeContext, layer: _Layer, rows: str, expert: str) -> str:
    found = ctx.emit(ChosenMatMul(), [rows, layer.weight, expert])
    if layer.bias is None:
        return found
    blocks, _, columns = ctx.type_of(found).shape
    bias = ctx.emit(Gather(0), [layer.bias, expert])
    return ctx.apply(Fn.ADD, found, ctx.reshape(bias, (blocks, 1, columns)))


def _halves(ctx: NodeContext, value: str) -> list[str]:
    """The gate and the linear part, which alternate, or are behind each other."""
    fused = ctx.attr("swiglu_fusion", 0)
    if fused not in (1, 2):
        raise Unsupported(f"swiglu_fusion={fused}", "give fc3, or use 1 or 2")
    columns = ctx.number(ctx.type_of(value).shape[-1], "two halves")
    half = columns // 2
    parts = [Cut(n, half, 2) if fused == 1 else Cut(n * half, half) for n in (0, 1)]
    return [ctx.slice(value, {2: part}) for part in parts]


def _swiglu(ctx: NodeContext, gate: str, linear: str) -> str:
    """``g * sigmoid(alpha * g) * (l + beta)`` of limited operands."""
    limit = float(ctx.attr("swiglu_limit", math.inf))
    if limit < math.inf:
        gate = ctx.apply(Fn.MIN, gate, ctx.literal(limit))
        linear = ctx.apply(Fn.CLIP, linear, params=(-limit, limit))
    alpha, beta = float(ctx.attr("activation_alpha", 1.0)), float(ctx.attr("activation_beta", 0.0))
    gate = swish_of(ctx, gate, alpha)
    linear = ctx.apply(Fn.ADD, linear, ctx.literal(beta)) if beta else linear
    return ctx.apply(Fn.MUL, gate, linear)


_ACTIVATIONS: dict[str, Callable[[NodeContext, str], str]] = {
    "gelu": lambda ctx, x: gelu_of(ctx, x, "tanh"),
    "identity": lambda ctx, x: x,
    "relu": lambda ctx, x: ctx.apply(Fn.RELU, x),
    "silu": swish_of,
}

OPERATORS: dict[str, Translate] = {"MoE": moe, "QMoE": qmoe}
