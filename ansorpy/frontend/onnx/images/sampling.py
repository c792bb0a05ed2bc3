"""Samples at computed places: grids of places, and images sampled there."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext, Translate
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import GridSample, MatMul
from ansorpy.graph.ops.images.grid_sample import MODES, PADDINGS

__all__ = ["OPERATORS", "grid_sample"]

_OLD_NAMES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names of modes before opset 20."""


def grid_sample(ctx: NodeContext) -> str:
    """An image at places between -1 and 1 along each axis."""
    given = ctx.attr("mode", "linear")
    mode, padding = _OLD_NAMES.get(given, given), ctx.attr("padding_mode", "zeros")
    if mode not in MODES:
        raise Unsupported(f"mode={given}", f"use one of {', '.join(MODES)}")
    if padding not in PADDINGS:
        raise Unsupported(f"padding_mode={padding}", f"use one of {', '.join(PADDINGS)}")
    op = GridSample(mode, padding, bool(ctx.attr("align_corners", 0)))
    return ctx.emit(op, [ctx.input(0), ctx.input(1)])


def affine_grid(ctx: NodeContext) -> str:
    """The places that an affine map of each batch sends the elements of an image to."""
    size = ctx.extents(1, "size")
    batch, spatial = size[0], [ctx.number(extent, "size") for extent in size[2:]]
    steps = [_steps(extent, bool(ctx.attr("align_corners", 0))) for extent in reversed(spatial)]
    grids = np.meshgrid(*steps[::-1], indexing="ij")[::-1]
    rows = np.stack([*(grid.reshape(-1) for grid in grids), np.ones(grids[0].size)])
    dtype = ctx.type().dtype
    ctx.constant_shape(rows.shape, dtype)
    # theta [n, rank, rank + 1] times [rank + 1, places], with places first in the result.
    places = ctx.emit(MatMul(), [ctx.input(0), ctx.literal(rows.astype(dtype.numpy), dtype)])
    turned = ctx.transpose(places, (0, 2, 1))
    return ctx.reshape(turned, (batch, *spatial, len(spatial)))


def _steps(extent: int, align: bool) -> np.ndarray:
    """The places of the elements along an axis."""
    if align:
        return np.linspace(-1.0, 1.0, extent)
    return (2.0 * np.arange(extent) + 1.0) / extent - 1.0


OPERATORS: dict[str, Translate] = {
    "AffineGrid": affine_grid,
    "GridSample": grid_sample,
}
