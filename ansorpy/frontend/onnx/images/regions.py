"""Regions of interest, which are data, each brought to the same size."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate
from ansorpy.frontend.onnx.operators.windows import require_positive
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Op, RegionAlign, RegionMax, RegionMean, RegionPeak
from ansorpy.ir.dtypes import DType

__all__ = ["OPERATORS"]


def roi_align(ctx: NodeContext) -> str:
    """Means or maxima of interpolated samples in each bin of a region."""
    ctx.require_float()
    usual = "half_pixel" if ctx.opset >= 16 else "output_half_pixel"
    given = ctx.attr("coordinate_transformation_mode", usual)
    if given not in ("half_pixel", "output_half_pixel"):
        raise Unsupported(
            f"coordinate_transformation_mode={given}", "use half_pixel or output_half_pixel"
        )
    mode, samples = ctx.attr("mode", "avg"), ctx.attr("sampling_ratio", 0)
    if mode not in ("avg", "max"):
        raise Unsupported(f"mode={mode}", "use avg or max")
    size = (ctx.attr("output_height", 1), ctx.attr("output_width", 1))
    require_positive(output_height=size[:1], output_width=size[1:])
    scale, half = float(ctx.attr("spatial_scale", 1.0)), given == "half_pixel"
    by_size = RegionPeak if mode == "max" else RegionMean
    op: Op = by_size(size, scale, half)
    if samples > 0:
        op = RegionAlign(size, samples, scale, half, mode == "max")
    return ctx.emit(op, [ctx.input(0), ctx.input(1), ctx.input(2)])


def max_roi_pool(ctx: NodeContext) -> str:
    """The largest element in each bin of a region, whose bounds are rounded."""
    ctx.require_float()
    pooled = ctx.ints("pooled_shape", ())
    if len(pooled) != 2:
        raise Unsupported(f"pooled_shape={pooled}", "give two numbers")
    require_positive(pooled_shape=pooled)
    if len(ctx.shape(1)) != 2 or ctx.shape(1)[1] != 5:
        raise Unsupported(f"rois of shape {ctx.shape(1)}", "give five numbers for each region")
    count = ctx.shape(1)[0]
    images = ctx.cast(ctx.slice(ctx.input(1), {1: Cut(0, 1)}), DType.INT64)
    corners = ctx.slice(ctx.input(1), {1: Cut(1, 4)})
    op = RegionMax((pooled[0], pooled[1]), float(ctx.attr("spatial_scale", 1.0)))
    return ctx.emit(op, [ctx.input(0), corners, ctx.reshape(images, (count,))])


OPERATORS: dict[str, Translate] = {
    "MaxRoiPool": max_roi_pool,
    "RoiAlign": roi_align,
}
