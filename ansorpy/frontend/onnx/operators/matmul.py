"""Matrix products; Gemm becomes transposes, a product and an add.

Transposes of constant weights are folded."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.graph.ops import Fn, MatMul

__all__ = ["OPERATORS", "gemm"]


def gemm(ctx: NodeContext) -> str:
    """``alpha * A' B' + beta * C``."""
    a, b = ctx.input(0), ctx.input(1)
    if {len(ctx.shape(0)), len(ctx.shape(1))} != {2}:
        raise ValueError("Gemm multiplies matrices")
    if ctx.attr("transA", 0):
        a = ctx.transpose(a, (1, 0))
    if ctx.attr("transB", 0):
        b = ctx.transpose(b, (1, 0))
    result = ctx.emit(MatMul(), [a, b])
    alpha, beta = ctx.attr("alpha", 1.0), ctx.attr("beta", 1.0)
    if alpha != 1.0:
        result = ctx.apply(Fn.MUL, result, ctx.literal(alpha))
    if not ctx.has_input(2) or beta == 0.0:
        return result
    c = ctx.input(2)
    if beta != 1.0:
        c = ctx.apply(Fn.MUL, c, ctx.literal(beta))
    return ctx.apply(Fn.ADD, result, c)


def matmul(ctx: NodeContext) -> str:
    """The product as in numpy: a vector becomes a row or column whose axis the result drops."""
    a, b = ctx.input(0), ctx.input(1)
    left, right = ctx.shape(0), ctx.shape(1)
    a = ctx.reshape(a, (1, *left)) if len(left) == 1 else a
    b = ctx.reshape(b, (*right, 1)) if len(right) == 1 else b
    result = ctx.emit(MatMul(), [a, b])
    shape = ctx.type_of(result).shape
    rows = () if len(left) == 1 else shape[-2:-1]
    columns = () if len(right) == 1 else shape[-1:]
    return ctx.reshape(result, (*shape[:-2], *rows, *columns))


OPERATORS = {"Gemm": gemm, "MatMul": matmul}
