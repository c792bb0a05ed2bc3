"""Convolution."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.windows import windows_of
from ansorpy.graph.op import Conv, Fn

__all__ = ["OPERATORS"]


def conv(ctx: NodeContext) -> str:
    """Groups, strides, dilations, asymmetric and automatic padding; one to three spatial axes."""
    weight = ctx.shape(1)
    rank = len(weight) - 2
    if not 1 <= rank <= 3:
        raise Unsupported(f"weight shape {weight}", "one to three spatial axes are supported")
    kernel = ctx.ints("kernel_shape", weight[2:])
    if kernel != weight[2:]:
        raise Unsupported(f"kernel_shape={kernel}", f"the weight has {weight[2:]}")
    groups = ctx.attr("group", 1)
    if groups < 1 or weight[0] % groups:
        raise Unsupported(f"group={groups}", f"it must divide the {weight[0]} output channels")
    w = windows_of(ctx, ctx.shape()[2:], kernel)
    op = Conv(w.strides, w.pads_begin, w.pads_end, w.dilations, groups)
    result = ctx.emit(op, [ctx.input(0), ctx.input(1)])
    if not ctx.has_input(2):
        return result
    bias = ctx.reshape(ctx.input(2), (weight[0], *(1,) * rank))
    return ctx.apply(Fn.ADD, result, bias)


OPERATORS = {"Conv": conv}
