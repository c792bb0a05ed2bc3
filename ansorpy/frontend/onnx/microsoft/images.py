"""Operators on images whose channels may be the last axis, and regions of images."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.images.sampling import grid_sample
from ansorpy.frontend.onnx.microsoft.activations import fused_conv
from ansorpy.frontend.onnx.microsoft.quantized import average_pool_of, of_one
from ansorpy.frontend.onnx.operands import with_operands
from ansorpy.frontend.onnx.operators.conv import conv
from ansorpy.frontend.onnx.operators.pool import max_pool
from ansorpy.frontend.onnx.operators.windows import require_positive
from ansorpy.frontend.onnx.quantized.products import qlinear_conv
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import RegionCrop

__all__ = ["OPERATORS"]


def _with_channels_last(importer: Translate, *images: int) -> Translate:
    """*importer*, of operands *images* whose channels are the last axis, as are the result's."""

    def build(ctx: NodeContext) -> str:
        given = {n: ctx.input(n) for n in images if ctx.has_input(n)}
        turned = {n: ctx.move_axis(x, len(ctx.shape(n)) - 1, 1) for n, x in given.items()}
        made = importer(with_operands(ctx, turned))
        value = made if isinstance(made, str) else made[0]
        return ctx.move_axis(value, 1, len(ctx.type_of(value).shape) - 1)

    return build


def _with_either(importer: Translate) -> Translate:
    """*importer*, of an image whose channels are the last axis if the node says so."""
    of_last = _with_channels_last(importer, 0)
    return lambda ctx: (of_last if ctx.attr("channels_last", 0) else importer)(ctx)


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
    op = RegionCrop((size[0], size[1]), mode == "nearest", beyond)
    return ctx.emit(op, [ctx.input(0), ctx.input(1), ctx.input(2)])


OPERATORS: dict[str, Translate] = {
    "CropAndResize": crop_and_resize,
    "GridSample": grid_sample,
    "NhwcConv": _with_channels_last(conv, 0, 1),
    "NhwcFusedConv": _with_channels_last(fused_conv, 0, 3),
    "NhwcMaxPool": _with_channels_last(max_pool, 0),
    "QLinearAveragePool": _with_either(of_one(average_pool_of)),
    "QLinearConv": _with_either(qlinear_conv),
}
