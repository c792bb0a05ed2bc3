"""Distances and inverses of matrices, and products of complex numbers.

Converters of scikit-learn and torch write them.
"""

from __future__ import annotations

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, widely
from ansorpy.frontend.onnx.microsoft.activations import fused_matmul
from ansorpy.frontend.onnx.operators.elimination import inverse
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import Fn, Reduce, ReduceKind

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
    squares = ctx.emit(Reduce(ReduceKind.SUM, (2,), False), [ctx.apply(Fn.MUL, apart, apart)])
    return squares if metric == "sqeuclidean" else ctx.apply(Fn.SQRT, squares)


def _complex_product(*, conjugated: bool) -> Translate:
    """An importer of products of numbers whose real and imaginary part are the last axis."""

    def build(ctx: NodeContext) -> str:
        (a, b), (c, d) = (_parts(ctx, n) for n in (0, 1))
        real, imaginary = (Fn.ADD, Fn.SUB) if conjugated else (Fn.SUB, Fn.ADD)
        parts = [
            ctx.apply(real, ctx.apply(Fn.MUL, a, c), ctx.apply(Fn.MUL, b, d)),
            ctx.apply(imaginary, ctx.apply(Fn.MUL, b, c), ctx.apply(Fn.MUL, a, d)),
        ]
        return ctx.concat(parts, len(ctx.type_of(parts[0]).shape) - 1)

    return build


def _parts(ctx: NodeContext, operand: int) -> list[str]:
    last = len(ctx.shape(operand)) - 1
    if last < 0 or ctx.shape(operand)[last] != 2:
        raise Unsupported(f"operand of shape {ctx.shape(operand)}", "the last axis has two parts")
    return [ctx.slice(ctx.input(operand), {last: Cut(n, 1)}) for n in (0, 1)]


OPERATORS: dict[str, Translate] = {
    "CDist": cdist,
    "ComplexMul": _complex_product(conjugated=False),
    "ComplexMulConj": _complex_product(conjugated=True),
    "Inverse": widely(inverse),
    "TransposeMatMul": fused_matmul,
}
