"""Convolution."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.operators.windows import biased, conv_op

__all__ = ["OPERATORS"]


def conv(ctx: NodeContext) -> str:
    """Supports groups, strides, dilations, all paddings, and one to three spatial axes."""
    return biased(ctx, ctx.emit(conv_op(ctx), [ctx.input(0), ctx.input(1)]), ctx.shape(1)[0])


OPERATORS = {"Conv": conv}
