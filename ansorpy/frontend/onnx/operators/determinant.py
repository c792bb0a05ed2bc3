"""Determinants, by elimination with row pivots."""

from __future__ import annotations

from collections.abc import Callable

from ansorpy.frontend.onnx.context import Cut, NodeContext, Unsupported, widely
from ansorpy.graph.ops import ArgReduce, Expand, Fn, GatherElements, ReduceOp
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS"]

_LARGEST = 64
"""Each row takes a few kernels, one after the other; larger matrices need another algorithm."""


def det(ctx: NodeContext) -> str:
    """The determinant of each of the matrices that the last two axes hold."""
    ctx.require_float()
    *lead, rows, columns = (1, *ctx.shape()) if len(ctx.shape()) < 2 else ctx.shape()
    size = ctx.number(rows, "matrix")
    if rows != columns or not 1 <= size <= _LARGEST:
        raise Unsupported(
            f"matrix of shape {(rows, columns)}", f"it must be square, up to {_LARGEST} rows"
        )
    rest = ctx.reshape(ctx.input(), (prod_of(lead), size, size))
    found: str | None = None
    for _ in range(size - 1):
        pivot, rest = _eliminated(ctx, rest)
        found = pivot if found is None else ctx.apply(Fn.MUL, found, pivot)
    found = rest if found is None else ctx.apply(Fn.MUL, found, rest)
    return ctx.reshape(found, tuple(lead))


def _eliminated(ctx: NodeContext, rest: str) -> tuple[str, str]:
    """The pivot of the first column, negated if rows are exchanged, and the matrices without it.

    The pivot is the element of the largest magnitude.  If it is 0, the determinant is 0, whatever
    the other elements are.
    """
    batch, size, _ = ctx.builder.types[rest].shape
    column = ctx.slice(rest, {2: Cut(0, 1)})
    place = ctx.emit(ArgReduce(ReduceOp.MAX, 1), [ctx.apply(Fn.ABS, column)])
    whole = ctx.emit(Expand((batch, 1, size)), [place])
    row = ctx.emit(GatherElements(1), [rest, whole])
    pivot = ctx.slice(row, {2: Cut(0, 1)})
    # The first row takes the place of the pivot's row.
    here = ctx.apply(Fn.EQUAL, ctx.places(size, 1), place)
    swapped = ctx.apply(Fn.WHERE, here, ctx.slice(rest, {1: Cut(0, 1)}), rest)
    below = ctx.slice(swapped, {1: Cut(1, size - 1)})
    zero = ctx.literal(0)
    factor = ctx.apply(Fn.DIV, ctx.slice(below, {2: Cut(0, 1)}), pivot)
    factor = ctx.apply(Fn.WHERE, ctx.apply(Fn.EQUAL, pivot, zero), zero, factor)
    taken = ctx.apply(Fn.MUL, factor, ctx.slice(row, {2: Cut(1, size - 1)}))
    left = ctx.apply(Fn.SUB, ctx.slice(below, {2: Cut(1, size - 1)}), taken)
    kept = ctx.apply(Fn.EQUAL, place, ctx.literal(0, DType.INT64))
    return ctx.apply(Fn.WHERE, kept, pivot, ctx.apply(Fn.NEG, pivot)), left


OPERATORS: dict[str, Callable[[NodeContext], str]] = {"Det": widely(det)}
