"""Matrix products; Gemm becomes transposes, a product and an add.

Transposes of constant weights are folded."""

from __future__ import annotations

from ansorpy.frontend.onnx.context import NodeContext
from ansorpy.graph.ops import Fn, MatMul, Shape

__all__ = ["OPERATORS", "as_matrices", "gemm", "product", "without_axes"]


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
    return product(ctx, ctx.input(0), ctx.input(1))


def product(ctx: NodeContext, a: str, b: str) -> str:
    """The product of two values as :func:`matmul` defines it."""
    left, right = (ctx.type_of(value).shape for value in (a, b))
    return without_axes(ctx, ctx.emit(MatMul(), as_matrices(ctx, a, b)), left, right)


def as_matrices(ctx: NodeContext, a: str, b: str) -> list[str]:
    """Two values, a vector among them as a row on the left, and as a column on the right."""
    left, right = (ctx.type_of(value).shape for value in (a, b))
    return [
        ctx.reshape(a, (1, *left)) if len(left) == 1 else a,
        ctx.reshape(b, (*right, 1)) if len(right) == 1 else b,
    ]


def without_axes(ctx: NodeContext, product: str, left: Shape, right: Shape) -> str:
    """*product* without the axes that vectors among operands of shapes *left* and *right* got."""
    shape = ctx.type_of(product).shape
    rows = () if len(left) == 1 else shape[-2:-1]
    columns = () if len(right) == 1 else shape[-1:]
    return ctx.reshape(product, (*shape[:-2], *rows, *columns))


OPERATORS = {"Gemm": gemm, "MatMul": matmul}
