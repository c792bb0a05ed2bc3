"""Operators on images whose channels may be the last axis, and regions of images."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Unsupported
from ansorpy.frontend.onnx.images.sampling import grid_sample
from ansorpy.frontend.onnx.microsoft.activations import fused_conv
from ansorpy.frontend.onnx.microsoft.domain import Importer, in_domain, with_operands
from ansorpy.frontend.onnx.microsoft.quantized import average_pool_of, of_one
from ansorpy.frontend.onnx.operators.conv import conv
from ansorpy.frontend.onnx.operators.pool import max_pool
from ansorpy.frontend.onnx.operators.windows import require_positive
from ansorpy.frontend.onnx.quantized.products import qlinear_conv
from ansorpy.graph.ops import RegionCrop

__all__ = ["OPERATORS"]


def _channels_first(ctx: NodeContext, value: str) -> str:
    last = len(ctx.type_of(value).shape) - 1
    return ctx.transpose(value, (0, last, *range(1, last)))


def _channels_last(ctx: NodeContext, value: str) -> str:
    rank = len(ctx.type_of(value).shape)
    return ctx.transpose(value, (0, *range(2, rank), 1))


def nhwc_conv(ctx: NodeContext) -> str:
    """A convolution whose weights, too, have the channels that they read last."""
    turned = {n: _channels_first(ctx, ctx.input(n)) for n in (0, 1)}
    return _channels_last(ctx, conv(with_operands(ctx, turned)))


def nhwc_fused_conv(ctx: NodeContext) -> str:
    """A convolution with weights as of Conv, plus an image, and an activation."""
    turned = {n: _channels_first(ctx, ctx.input(n)) for n in (0, 3) if ctx.has_input(n)}
    return _channels_last(ctx, fused_conv(with_operands(ctx, turned)))


def nhwc_max_pool(ctx: NodeContext) -> str:
    """The maximum of each window."""
    turned = {0: _channels_first(ctx, ctx.input())}
    return _channels_last(ctx, max_pool(with_operands(ctx, turned))[0])


def quantized_conv(ctx: NodeContext) -> str:
    """QLinearConv, of images whose channels are the last axis if the node says so."""
    if not ctx.attr("channels_last", 0):
        return qlinear_conv(ctx)
    turned = {0: _channels_first(ctx, ctx.input())}
    return _channels_last(ctx, qlinear_conv(with_operands(ctx, turned)))


def quantized_average_pool(ctx: NodeContext) -> str:
    """Means of windows of a quantized image, whose channels may be the last axis."""
    if not ctx.attr("channels_last", 0):
        return of_one(average_pool_of)(ctx)
    turned = {0: _channels_first(ctx, ctx.input())}
    return _channels_last(ctx, of_one(average_pool_of)(with_operands(ctx, turned)))


def crop_and_resize(ctx: NodeContext) -> str:
    """Regions, in parts of an image's height and width, each brought to the same size."""
    ctx.require_float()
    mode = ctx.attr("mode", "bilinear")
    if mode not in ("bilinear", "nearest"):
        raise Unsupported(f"mode={mode}", "use bilinear or nearest")
    size = ctx.constant_ints(3, "crop_size")
    if len(size) != 2:
        raise Unsupported(f"crop_size={size}", "give two numbers")
    require_positive(crop_size=size)
    beyond = float(ctx.attr("extrapolation_value", 0.0))
    op = RegionCrop((int(size[0]), int(size[1])), mode == "nearest", beyond)
    return ctx.emit(op, [ctx.input(0), ctx.input(1), ctx.input(2)])


_IMPORTERS: dict[str, Importer] = {
    "CropAndResize": crop_and_resize,
    "GridSample": grid_sample,
    "NhwcConv": nhwc_conv,
    "NhwcFusedConv": nhwc_fused_conv,
    "NhwcMaxPool": nhwc_max_pool,
    "QLinearAveragePool": quantized_average_pool,
    "QLinearConv": quantized_conv,
}
OPERATORS: dict[str, Importer] = in_domain(_IMPORTERS)
