"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.graph.op import Fn, Reduce, ReduceOp, Shape

__all__ = ["OPERATORS"]

Importer = Callable[[NodeContext], str]


def _axes(ctx: NodeContext) -> Shape:
    """The ``axes`` attribute, or newer opsets' second input; all axes when neither is given."""
    rank = len(ctx.shape())
    axes: Shape = ctx.ints("axes", ())
    if ctx.has_input(1):
        axes = ctx.constant_ints(1, "axes")
    keeps_all = bool(ctx.attr("noop_with_empty_axes", 0))
    if axes or keeps_all:
        return tuple(sorted({ctx.axis(a, rank) for a in axes}))
    return tuple(range(rank))


def _reduction(kind: ReduceOp) -> Importer:
    def build(ctx: NodeContext) -> str:
        axes = _axes(ctx)
        if not axes:
            return ctx.input()
        return ctx.emit(Reduce(kind, axes, bool(ctx.attr("keepdims", 1))), [ctx.input()])

    return build


def reduce_mean(ctx: NodeContext) -> str:
    """The sum times the reciprocal of the count."""
    ctx.require_float()
    total = _reduction(ReduceOp.SUM)(ctx)
    count = math.prod(ctx.shape()[a] for a in _axes(ctx))
    return ctx.apply(Fn.MUL, total, ctx.literal(1.0 / count))


OPERATORS: dict[str, Importer] = {
    "ReduceMax": _reduction(ReduceOp.MAX),
    "ReduceMean": reduce_mean,
    "ReduceMin": _reduction(ReduceOp.MIN),
    "ReduceProd": _reduction(ReduceOp.PROD),
    "ReduceSum": _reduction(ReduceOp.SUM),
}
