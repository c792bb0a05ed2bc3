"""Convolution."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.dequantized import integer_conv
from ansorpy.frontend.onnx.windows import biased, kernel_of, windows_of
from ansorpy.graph.op import Conv

__all__ = ["OPERATORS"]


def conv(ctx: NodeContext) -> str:
    """Supports groups, strides, dilations, all paddings, and one to three spatial axes."""
    kernel, groups = kernel_of(ctx, "output channels")
    w = windows_of(ctx, ctx.shape()[2:], kernel)
    op = Conv(w.strides, w.pads_begin, w.pads_end, w.dilations, groups)
    operands = ctx.input(0), ctx.input(1)
    result = integer_conv(ctx, *operands) or ctx.emit(op, operands)
    return biased(ctx, result, ctx.shape(1)[0])


OPERATORS = {"Conv": conv}
