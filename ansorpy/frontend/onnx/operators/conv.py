"""Convolution."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.operators.windows import biased, kernel_of, padded, windows_of
from ansorpy.graph.ops import Conv

__all__ = ["OPERATORS", "conv"]


def conv(ctx: NodeContext) -> str:
    """Supports groups, strides, dilations, all paddings, and one to three spatial axes."""
    kernel, groups = kernel_of(ctx, "output channels")
    data, w = padded(ctx, ctx.input(0), windows_of(ctx, ctx.shape()[2:], kernel), 0.0)
    op = Conv(w.strides, w.pads_begin, w.pads_end, w.dilations, groups)
    return biased(ctx, ctx.emit(op, [data, ctx.input(1)]), ctx.shape(1)[0])


OPERATORS = {"Conv": conv}
