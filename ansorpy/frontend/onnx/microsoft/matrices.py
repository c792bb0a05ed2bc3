"""Distances, inverses and triangles of matrices, and samples of images.

Converters of scikit-learn and torch write them.
"""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext, Unsupported, widely
from ansorpy.frontend.onnx.images.sampling import grid_sample
from ansorpy.frontend.onnx.microsoft.activations import fused_matmul
from ansorpy.frontend.onnx.microsoft.domain import Importer, in_domain
from ansorpy.frontend.onnx.operators.elimination import inverse
from ansorpy.frontend.onnx.operators.places import trilu
from ansorpy.graph.ops import Fn, Reduce, ReduceOp

__all__ = ["OPERATORS"]


def cdist(ctx: NodeContext) -> str:
    """``[m, n]``: the distance of each row of the first operand from each one of the second."""
    metric = ctx.attr("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise Unsupported(f"metric={metric}", "use euclidean or sqeuclidean")
    ctx.require_rank(0, 2)
    ctx.require_rank(1, 2)
    (m, columns), (n, _) = ctx.shape(0), ctx.shape(1)
    rows = ctx.reshape(ctx.input(0), (m, 1, columns))
    apart = ctx.apply(Fn.SUB, rows, ctx.reshape(ctx.input(1), (1, n, columns)))
    squares = ctx.emit(Reduce(ReduceOp.SUM, (2,), False), [ctx.apply(Fn.MUL, apart, apart)])
    return squares if metric == "sqeuclidean" else ctx.apply(Fn.SQRT, squares)


_IMPORTERS: dict[str, Importer] = {
    "CDist": cdist,
    "GridSample": grid_sample,
    "Inverse": widely(inverse),
    "TransposeMatMul": fused_matmul,
    "Trilu": trilu,
}
OPERATORS: dict[str, Importer] = in_domain(_IMPORTERS)
