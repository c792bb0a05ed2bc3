"""Determinants and inverses of matrices, by elimination with row pivots."""

from __future__ import annotations

import numpy as np

from ansorpy.frontend.onnx.context import Cut, NodeContext, Translate, widely
from ansorpy.frontend.onnx.unsupported import Unsupported
from ansorpy.graph.ops import ArgReduce, Expand, Fn, GatherElements, ReduceKind, Shape
from ansorpy.ir.dtypes import DType
from ansorpy.ir.extents import prod_of

__all__ = ["OPERATORS", "inverse"]

_LARGEST = 64
"""Each row takes a few kernels, one after the other; larger matrices need another algorithm."""


def det(ctx: NodeContext) -> str:
    """The determinant of each of the matrices that the last two axes hold."""
    lead, rest = _matrices(ctx)
    size = ctx.number(ctx.type_of(rest).shape[-1], "matrix")
    found: str | None = None
    for _ in range(size - 1):
        pivot, rest = _eliminated(ctx, rest)
        found = pivot if found is None else ctx.apply(Fn.MUL, found, pivot)
    found = rest if found is None else ctx.apply(Fn.MUL, found, rest)
    return ctx.reshape(found, lead)


def inverse(ctx: NodeContext) -> str:
    """The inverse of each of the matrices that the last two axes hold.

    Of a matrix without one, elements are infinite or NaN.
    """
    lead, left = _matrices(ctx)
    batch, _, size = ctx.type_of(left).shape
    size = ctx.number(size, "matrix")
    one = ctx.literal(np.eye(size)[None])
    both = ctx.concat([left, ctx.emit(Expand((batch, size, size)), [one])], 2)
    for k in range(size):
        both = _cleared(ctx, both, k)
    return ctx.reshape(ctx.slice(both, {2: Cut(size, size)}), (*lead, size, size))


def _matrices(ctx: NodeContext) -> tuple[Shape, str]:
    """The axes before the matrices of the operand, and these in one batch."""
    ctx.require_float()
    *lead, rows, columns = (1, *ctx.shape()) if len(ctx.shape()) < 2 else ctx.shape()
    size = ctx.number(rows, "matrix")
    if rows != columns or not 1 <= size <= _LARGEST:
        raise Unsupported(
            f"matrix of shape {(rows, columns)}", f"it must be square, up to {_LARGEST} rows"
        )
    return tuple(lead), ctx.reshape(ctx.input(), (prod_of(lead), size, size))


def _cleared(ctx: NodeContext, both: str, k: int) -> str:
    """The matrices after row operations that make column *k* that of the identity."""
    size = ctx.number(ctx.type_of(both).shape[1], "matrix")
    place, row = _pivoted(ctx, ctx.slice(both, {1: Cut(k, size - k)}), k)
    scaled = ctx.apply(Fn.DIV, row, ctx.slice(row, {2: Cut(k, 1)}))
    numbers = ctx.places(size, 1)
    here = ctx.apply(Fn.EQUAL, numbers, ctx.apply(Fn.ADD, place, ctx.literal(k, DType.INT64)))
    swapped = ctx.apply(Fn.WHERE, here, ctx.slice(both, {1: Cut(k, 1)}), both)
    taken = ctx.apply(Fn.MUL, ctx.slice(swapped, {2: Cut(k, 1)}), scaled)
    own = ctx.apply(Fn.EQUAL, numbers, ctx.literal(k, DType.INT64))
    return ctx.apply(Fn.WHERE, own, scaled, ctx.apply(Fn.SUB, swapped, taken))


def _pivoted(ctx: NodeContext, rows: str, k: int) -> tuple[str, str]:
    """Which row has the largest magnitude in column *k*, and that row."""
    batch, _, columns = ctx.type_of(rows).shape
    column = ctx.slice(rows, {2: Cut(k, 1)})
    place = ctx.emit(ArgReduce(ReduceKind.MAX, 1), [ctx.apply(Fn.ABS, column)])
    whole = ctx.emit(Expand((batch, 1, columns)), [place])
    return place, ctx.emit(GatherElements(1), [rows, whole])


def _eliminated(ctx: NodeContext, rest: str) -> tuple[str, str]:
    """The pivot of the first column, negated if rows are exchanged, and the matrices without it.

    The pivot is the element of the largest magnitude.  If it is 0, the determinant is 0, whatever
    the other elements are.
    """
    size = ctx.type_of(rest).shape[1]
    place, row = _pivoted(ctx, rest, 0)
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


OPERATORS: dict[str, Translate] = {"Det": widely(det)}
