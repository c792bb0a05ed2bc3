"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.frontend.onnx.operators.scatter import apart
from ansorpy.frontend.onnx.selection.chosen import true_places
from ansorpy.graph.ops import Computed, Fn, Gather
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import AnyExtent, extreme
from ansorpy.ir.routines.suppression import Suppression
from ansorpy.ir.symbols import SizeOp

__all__ = ["OPERATORS"]


def non_max_suppression(ctx: NodeContext) -> str:
    """The boxes that are kept: rows of batch, class and box, by falling score in each class."""
    batch, classes, n = ctx.shape(1)
    limit = _most_kept(ctx, n)
    given = [
        ctx.reshape(ctx.input(k), (1,)) if ctx.has_input(k) else ctx.literal(np.zeros(1), dtype)
        for k, dtype in ((2, DType.INT64), (3, DType.FLOAT32), (4, DType.FLOAT32))
    ]
    if any(extent == 0 for extent in (batch, classes, n, limit)):
        return ctx.literal(np.zeros((0, 3)), DType.INT64)
    routine = Suppression(bool(ctx.attr("center_point_box", 0)), ctx.has_input(4))
    kept = ctx.emit(
        Computed(routine, (batch, classes, limit), DType.INT64),
        apart(ctx, [ctx.input(0), ctx.input(1), *given]),
    )
    flat = ctx.reshape(kept, (batch * classes * limit,))
    flags = ctx.apply(Fn.LESS_EQUAL, ctx.literal(0, DType.INT64), flat)
    places, count = true_places(ctx, flags)
    row = ctx.apply(Fn.DIV, places, ctx.size(limit, DType.INT64))
    columns = [
        ctx.apply(Fn.DIV, row, ctx.size(classes, DType.INT64)),
        ctx.apply(Fn.MOD, row, ctx.size(classes, DType.INT64)),
        ctx.emit(Gather(0), [flat, places]),
    ]
    return ctx.concat([ctx.reshape(column, (count, 1)) for column in columns], 1)


def _most_kept(ctx: NodeContext, boxes: AnyExtent) -> AnyExtent:
    """How many boxes of a class are kept at most; all may be, if only a run knows."""
    if not ctx.has_input(2):
        return 0
    known = ctx.builder.constants.get(ctx.input(2))
    if known is None:
        return boxes
    return extreme(SizeOp.MIN, max(int(known.item()), 0), boxes)


OPERATORS = {"NonMaxSuppression": non_max_suppression}
